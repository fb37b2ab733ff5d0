#!/usr/bin/env bash
# Configures if needed, and builds what is out of date: scripts/build.sh [PRESET] [NINJA OPTION OR TARGET...]
# PRESET is one of CMakePresets.json: release (the default, in build/), demo (in build/ too, with the kernels that scripts/demo.sh
# runs; release adds the others), or, by what release has built before, asan-ubsan (in build-asan/, with its kernels, those for
# OpenCL too: `scripts/test.sh --sanitize` has build/ make them), linux-aarch64 (in build-aarch64/, by its generators),
# linux-armv7 or wasm32-wasi; each of these three with -part has kernels of some types, and the tests of kernels alone. The command
# line is built on Linux alone.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

preset=${1:-release}
shift || true
case $preset in
release | demo) folder=build ;;
asan-ubsan) folder=build-asan ;;
linux-aarch64 | linux-aarch64-part)
    folder=build-${preset#linux-}
    need_packages g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
    ;;
linux-armv7 | linux-armv7-part)
    folder=build-${preset#linux-}
    need_packages g++-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user
    ;;
wasm32-wasi | wasm32-wasi-part) folder=build-$preset ;;
*) die "no preset '$preset': release, demo, asan-ubsan, linux-aarch64, linux-armv7 or wasm32-wasi, these three with -part too" ;;
esac
[[ -f $venv/.complete ]] || die "run scripts/setup.sh first"

# Ninja itself configures again when a CMake file changes, but knows nothing of the presets nor of the environment.
last=$(cat "$folder/.preset" 2>/dev/null || echo "$preset")
if [[ ! $folder/build.ninja -nt CMakePresets.json || ! $folder/build.ninja -nt $venv/.complete || $last != "$preset" ]]; then
    fresh=()
    # A cache from before the repository was moved would be refused.
    if [[ -f $folder/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
        fresh=(--fresh)
    fi
    logged "configure-$preset" "cmake --preset $preset" "$venv/bin/cmake" "${fresh[@]}" --preset "$preset"
    echo "$preset" >"$folder/.preset"
fi
say "building in $folder/"
# With percentage, so that a log shows how far it is; on a terminal ninja keeps to one line.
NINJA_STATUS='[%p %es] ' "$venv/bin/cmake" --build --preset "$preset" -- "$@"
