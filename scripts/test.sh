#!/usr/bin/env bash
# Sets up, builds and runs the tests: on this machine (each ISA of x86 that its CPU runs, AMX in software, OpenCL by PoCL on the
# CPU), and those of kernels, of some types, as 64-bit and 32-bit ARM under qemu and as WebAssembly in wasmtime:
# scripts/test.sh [--all | --preset PRESET | --sanitize [thread] | --devices | --torch] [CTEST OPTION...]
#   --all                   all types and all tests on each of those, what ptxas makes of kernels for CUDA, programs for Windows
#                           and macOS, the wheel, with several versions of ONNX Runtime, and the API reference
#   --preset release        only those on this machine;  --preset linux-aarch64, linux-armv7, wasm32-wasi: all types and all
#                           tests there;  --preset linux-aarch64-part and so on: what is run there without any option
#   --sanitize              in build-asan/, our code compiled with the address and undefined-behaviour sanitizers, with the kernels
#                           of build/, which it builds first, those for OpenCL too; without the tests in which none of it runs
#   --sanitize thread       what may be done at once, with the thread sanitizer and the kernels of build/, which it builds first
#   --devices               kernels for GPUs: OpenCL's by PoCL on this CPU, CUDA's by ptxas, and on a GPU where there is one
#   --torch                 the PyTorch integration alone, with the build's package and the PyTorch of requirements-torch.txt, which
#                           this downloads: several gigabytes. All other runs skip these tests where there is no PyTorch
#   -L geometry             (as every other option) is passed on to ctest: only the tests with that label, on this machine
#                           unless a preset is named
# Tests of a CPU or a GPU that is not there are skipped, and ctest lists them. Those of what this script has set up must run.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

presets=(release linux-aarch64-part linux-armv7-part wasm32-wasi-part)
devices=
all=0
tsan=0
if (($#)); then presets=(release); else devices=opencl; fi
case ${1:-} in
--all)
    presets=(release linux-aarch64 linux-armv7 wasm32-wasi)
    devices='opencl;cuda'
    all=1
    export CONVTRANSPOSE_TEST_ALL=1 # tests that take long try a part otherwise
    need_packages doxygen           # this and the next for the test `docs.Api`
    make_environment build/docs-venv requirements-docs.txt
    shift
    ;;
--sanitize)
    presets=(asan-ubsan)
    devices=opencl
    shift
    if [[ ${1:-} == thread ]]; then
        shift
        presets=(release)
        devices=
        tsan=1
        set -- -L '^tsan$' "$@"
    fi
    ;;
--devices)
    devices='opencl;cuda'
    shift
    set -- -L 'opencl|cuda' "$@"
    ;;
--torch)
    shift
    (($# == 0)) || die "--torch takes no options of ctest"
    scripts/setup.sh
    scripts/build.sh release
    make_environment build/torch-venv requirements-torch.txt
    say "running the tests of the PyTorch integration"
    cd tests/python
    export PYTHONPATH=$root/build/bindings/python
    exec "$root/build/torch-venv/bin/python" -B -W error::ResourceWarning -m unittest test_torch test_torch_module test_torch_fuse test_torch_page
    ;;
--preset)
    presets=("${2:?--preset needs a name}")
    shift 2
    ;;
esac
scripts/setup.sh
make_environment build/lint-venv requirements-lint.txt # for the test `lint`
if [[ $devices ]]; then
    # PoCL is the driver; programs find it through the loader.
    need_packages pocl-opencl-icd ocl-icd-libopencl1
    export CONVTRANSPOSE_TEST_DEVICES=opencl # whose tests fail without a device
    if [[ $devices == *cuda* ]]; then
        export CONVTRANSPOSE_TEST_DEVICES='opencl ptxas'
        if ! cmp -s requirements-gpu.txt build/venv/.requirements-gpu; then
            logged pip-gpu "pip install -r requirements-gpu.txt" \
                "$venv/bin/python" -m pip install --no-input --no-deps --upgrade --target build/venv/site-packages \
                -r requirements-gpu.txt
            cp requirements-gpu.txt build/venv/.requirements-gpu
        fi
    fi
    configure_devices "$devices"
fi
if ((tsan)); then
    scripts/build.sh release
    "$venv/bin/cmake" -D CONVTRANSPOSE_TSAN=ON build >/dev/null # from now on among all tests
fi
status=0
for preset in "${presets[@]}"; do
    if [[ $preset != release ]]; then scripts/build.sh release; fi # whose generators or kernels it takes
    scripts/build.sh "$preset"
    # Which ISAs and devices there are.
    if [[ $preset == release ]]; then "$root/build/bin/convtranspose" targets | sed '/^variants/,$d'; fi
    say "running the tests ($preset)"
    skipped=()
    if [[ $preset == asan-ubsan ]]; then # what has none of our compiled code, or only as another compiler makes it
        skipped=(-E '^(conformance\.Files|cost|cross\.(wasm32-wasi|windows-x86_64|macos-arm64)|kernels|lint|mca|python\.types|rooms|table)($|\.)')
    fi
    if [[ $preset == release && " ${presets[*]} " == *' wasm32-wasi'* ]]; then
        skipped=(-E '^cross\.wasm32-wasi\.') # another preset builds the same, and more
        # zig compiles the libraries of those systems for several minutes.
        if [[ ! ${CONVTRANSPOSE_TEST_ALL:-} ]]; then skipped=(-E '^cross\.(wasm32-wasi|windows-x86_64|macos-arm64)\.'); fi
    fi
    "$venv/bin/ctest" --preset "$preset" -j "$(nproc)" "${skipped[@]}" "$@" || status=1
done
if ((all)) && [[ ! ${1:-} ]]; then scripts/wheel.sh --check || status=1; fi
exit "$status"
