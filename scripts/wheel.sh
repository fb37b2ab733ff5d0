#!/usr/bin/env bash
# Makes a wheel of the Python package for this machine's architecture, in build/wheel: what is in build/ already is not built
# again. auditwheel puts into it the libraries that other machines may lack, and says which Linux it runs on.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

scripts/setup.sh
scripts/build.sh release
rm -rf build/wheel
# The cache of build/ is that of the tests too.
PATH=$venv/bin:$PATH logged wheel "pip wheel" "$venv/bin/python" -m pip wheel . --no-deps --no-build-isolation \
    --wheel-dir build/wheel/raw --config-settings=build-dir=build \
    --config-settings=cmake.define.CONVTRANSPOSE_BUILD_TESTS=ON
PATH=$venv/bin:$PATH logged auditwheel "auditwheel repair" "$venv/bin/auditwheel" repair --wheel-dir build/wheel build/wheel/raw/*.whl
for wheel in build/wheel/*.whl; do
    say "$wheel, $(($(stat -c %s "$wheel") / 1000000)) MB"
done
