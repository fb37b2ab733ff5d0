#!/usr/bin/env bash
# Shows what the library does, from a bare machine: sets up, builds, runs ONNX's own ConvTranspose tests, upsamples a
# picture (into demo-output/), compares values and speed with ONNX Runtime, and runs networks in ONNX Runtime with and without
# this library as its execution provider.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

heading "Set-up and build"
scripts/setup.sh
# All that is installed, without the tests, and of the kernels those that this runs. A build that has more keeps them.
preset=demo
if [[ -f build/build.ninja && $(cat build/.preset 2>/dev/null) != demo ]]; then preset=release; fi
scripts/build.sh "$preset" generators/all runtime/all tools/all bindings/python/all bindings/onnxruntime/all

work=build/demo
rm -rf "$work"
mkdir -p "$work"

heading "ONNX's own ConvTranspose node tests"
"$venv/bin/python" scripts/demo/node_tests.py "$work/node_tests"
build/bin/convtranspose run "$work"/node_tests/* --output-dir "$work/node_tests_output" --verify

heading "Upsampling a picture"
"$venv/bin/python" scripts/demo/photo_upsample.py
find demo-output -name '*.png' | sort

heading "Beside ONNX Runtime"
"$venv/bin/python" scripts/demo/beside_onnxruntime.py

heading "Networks in ONNX Runtime, without and with this library as its execution provider"
PYTHONPATH=build/bindings/python "$venv/bin/python" -B bench/networks/networks_benchmark.py --seconds 1 dcgan simple_baseline

heading "Done"
say "$(elapsed) seconds in all; the pictures are in demo-output/"
