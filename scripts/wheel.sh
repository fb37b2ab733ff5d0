#!/usr/bin/env bash
# Makes a wheel of the Python package for this machine's architecture, in build/wheel: what is in build/ already is not built
# again. auditwheel puts into it the libraries that other machines may lack, and says which Linux it runs on.
#   --check   installs it where there is no compiler, and runs the tests of its execution provider in several versions of
#             ONNX Runtime, which pip downloads
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"
[[ ! ${1:-} || $1 == --check ]] || die "no option '$1': see --help"

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
    [[ ${1:-} ]] || continue
    say "$(tests/python/first_result.sh "$wheel")"
    "$venv/bin/python" -m zipfile --extract "$wheel" build/wheel/unpacked
    CONVTRANSPOSE_PYTHONPATH=$root/build/wheel/unpacked tests/onnxruntime/versions.sh
done
