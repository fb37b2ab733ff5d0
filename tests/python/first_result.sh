#!/usr/bin/env bash
# Installs a wheel in an empty virtual environment that sees no compiler, and computes a first layer with it:
# tests/python/first_result.sh WHEEL
# It prints how many seconds each step took.
set -euo pipefail
wheel=$(realpath "${1:?first_result.sh needs a wheel}")
whole_path=$PATH
folder=$(mktemp -d)
trap 'PATH=$whole_path; rm -rf "$folder"' EXIT
cd "$folder" # where nothing of the source tree can be imported

now() { echo "${EPOCHREALTIME/[.,]/}"; } # microseconds
seconds() { echo "$((($2 - $1) / 1000000)).$((($2 - $1) % 1000000 / 100000)) s"; }

started=$(now)
python3 -m venv environment
unset CC CXX PYTHONPATH
export PATH=$folder/environment/bin
for program in cc gcc c++ g++ clang cmake ninja; do
    if command -v "$program"; then
        echo "$program is on PATH, where no compiler should be" >&2
        exit 1
    fi
done
made=$(now)
python -m pip install --quiet --no-input --disable-pip-version-check --only-binary :all: "$wheel"
installed=$(now)
python -B -c '
import numpy as np, convtranspose
y = convtranspose.conv_transpose(np.ones((1, 256, 16, 12), np.float32), np.full((256, 128, 4, 4), 0.5, np.float32), strides=2, pads=1)
assert y.shape == (1, 128, 32, 24) and y[0, 0, 16, 12] == 512, y[0, 0, 16, 12]
'
computed=$(now)
if [[ $(python -m zipfile --list "$wheel") == *convtranspose/bin/convtranspose* ]]; then # has the command line
    targets=$(convtranspose targets)
    if [[ $targets != *variants* ]]; then
        echo "the command line lists no variants: $targets" >&2
        exit 1
    fi
fi
echo "${wheel##*/}: an environment $(seconds "$started" "$made"), pip install $(seconds "$made" "$installed")," \
    "a first result $(seconds "$installed" "$computed"), together $(seconds "$started" "$computed")"
