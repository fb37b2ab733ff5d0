#!/usr/bin/env bash
# Sets up, builds and runs the tests: scripts/test.sh [--sanitize] [CTEST OPTION...]
#   --sanitize   in build-asan/, our code compiled with the address and undefined-behaviour sanitizers
#   -L geometry  (as every other option) is passed on to ctest: only the tests with that label
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

preset=release
if [[ ${1:-} == --sanitize ]]; then
    preset=asan-ubsan
    shift
fi
scripts/setup.sh
scripts/build.sh "$preset"
say "running the tests"
"$venv/bin/ctest" --preset "$preset" -j "$(nproc)" "$@"
