#!/usr/bin/env bash
# Sets up, builds and runs the tests, on this machine and as 64-bit ARM under qemu:
# scripts/test.sh [--preset PRESET | --sanitize | --devices] [CTEST OPTION...]
#   --preset linux-aarch64  only those under qemu;  --preset release: only those on this machine
#   --preset linux-armv7    as 32-bit ARM under qemu;  --preset wasm32-wasi: as WebAssembly, in wasmtime
#   --sanitize              in build-asan/, our code compiled with the address and undefined-behaviour sanitizers
#   --devices               kernels for GPUs: OpenCL's by PoCL on this CPU, CUDA's by ptxas, and on a GPU where there is one
#   -L geometry             (as every other option) is passed on to ctest: only the tests with that label, on this machine
#                           unless a preset is named
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

presets=(release linux-aarch64)
devices=0
if (($#)); then presets=(release); fi
case ${1:-} in
--sanitize)
    presets=(asan-ubsan)
    shift
    ;;
--devices)
    devices=1
    shift
    set -- -L 'opencl|cuda' "$@"
    ;;
--preset)
    presets=("${2:?--preset needs a name}")
    shift 2
    ;;
esac
scripts/setup.sh
if ((devices)); then
    # What runs OpenCL on this CPU. Without it those tests skip, as those for CUDA do without a GPU or ptxas.
    (need_packages pocl-opencl-icd) || say "no pocl-opencl-icd: the tests of kernels for OpenCL will skip"
    if ! cmp -s requirements-gpu.txt build/venv/.requirements-gpu; then
        if logged pip-gpu "pip install -r requirements-gpu.txt" \
            "$venv/bin/python" -m pip install --no-input --no-deps --upgrade --target build/venv/site-packages \
            -r requirements-gpu.txt; then
            cp requirements-gpu.txt build/venv/.requirements-gpu
        else
            say "no ptxas: the test of kernels for CUDA will skip"
        fi
    fi
    configure_devices
fi
status=0
for preset in "${presets[@]}"; do
    if [[ $preset == linux-* || $preset == wasm32-* ]]; then scripts/build.sh release; fi # whose generators it takes
    scripts/build.sh "$preset"
    # Or why tests will skip.
    if ((devices)); then "$root/build/bin/convtranspose" targets | sed -n '/^devices of/,/^variants/{/^variants/!p}'; fi
    say "running the tests ($preset)"
    "$venv/bin/ctest" --preset "$preset" -j "$(nproc)" "$@" || status=1
done
exit "$status"
