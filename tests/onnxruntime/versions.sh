#!/usr/bin/env bash
# Runs the tests of the execution provider in several versions of ONNX Runtime: tests/onnxruntime/versions.sh [VERSION...]
#   VERSION   from 1.23.1 on; without any, 1.23.2, 1.25.1, 1.28.0 and 1.32.0
# Each gets a virtual environment in build/onnxruntime-VERSION, by pip. CONVTRANSPOSE_PYTHONPATH names the folder that holds
# convtranspose/ with the provider's library; by default that of build/.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$folder/../.." && pwd)
modules=${CONVTRANSPOSE_PYTHONPATH:-$root/build/bindings/python}
if [[ ! -f $modules/convtranspose/onnxruntime.py ]]; then
    echo "'$modules' has no convtranspose/: build with -D CONVTRANSPOSE_BUILD_ONNXRUNTIME=ON -D CONVTRANSPOSE_BUILD_PYTHON=ON first" >&2
    exit 1
fi
versions=("$@")
if ((${#versions[@]} == 0)); then versions=(1.23.2 1.25.1 1.28.0 1.32.0); fi
status=0
for version in "${versions[@]}"; do
    environment=$root/build/onnxruntime-$version
    if [[ ! -f $environment/.complete ]]; then
        python3 -m venv --clear "$environment"
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "onnxruntime==$version" onnx numpy ml_dtypes \
            sympy
        touch "$environment/.complete"
    fi
    for suite in backend conformance floats fusing lifecycle networks options quantize quantized; do
        log=$environment/$suite.log
        if PYTHONPATH=$modules "$environment/bin/python" -B "$folder/${suite}_test.py" >"$log" 2>&1; then
            echo "onnxruntime $version, $suite: $(grep -E '^Ran ' "$log")"
        else
            echo "onnxruntime $version, $suite: failed, see $log"
            status=1
        fi
    done
done
exit "$status"
