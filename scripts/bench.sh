#!/usr/bin/env bash
# Times layers of real networks in this library, PyTorch (oneDNN), ONNX Runtime, OpenVINO, LiteRT (XNNPACK), oneDNN by itself, MNN
# and ncnn, in turns, after comparing all results: scripts/bench.sh [OPTION...]. Results, tables and plots go to build/bench/.
# Everything takes about half an hour; nothing else should run on the machine meanwhile.
# scripts/bench.sh --dtype bf16 [OPTION...] times ours and PyTorch in bf16.
# scripts/bench.sh --isa avx2 [OPTION...] forces ours, and the peers that can be, to that ISA.
# scripts/bench.sh --device cuda [OPTION...] times them on the GPU, beside cuDNN through PyTorch; --device opencl without a peer.
# Once it has run, build/bench-venv/bin/python bench/compare.py --help lists all options; bench/gpu/compare.py has those for
# devices.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

benchmark=bench/compare.py
for option in "$@"; do
    [[ $option != --device* ]] || benchmark=bench/gpu/compare.py
done
# With a binary of its own it need not build.
build=true
for option in "$@"; do
    [[ $option != --convtranspose* ]] || build=false
done
if $build; then
    scripts/setup.sh
    if [[ $benchmark == bench/gpu/* ]]; then configure_devices 'opencl;cuda'; fi
    scripts/build.sh
fi
need_packages ca-certificates python3 python3-venv
make_environment build/bench-venv bench/requirements.txt
install_peers() {
    local folder=$root/build/bench-venv/not-installed peer packages
    mkdir -p "$folder"
    for peer in mnn ncnn onednn; do
        mapfile -t packages < <(sed -n "s/ *# $peer\$//p" bench/requirements-peers.txt)
        rm -f "$folder/$peer"
        logged "bench-$peer" "pip install ${packages[0]}" "$root/build/bench-venv/bin/python" -m pip install --no-input \
            --disable-pip-version-check --progress-bar off --only-binary :all: --no-deps "${packages[@]}" ||
            grep '^ERROR' "$root/build/log/bench-$peer.log" | tail -n 1 >"$folder/$peer" || true
    done
}
[[ $benchmark == bench/gpu/* ]] || install_peers
"$root/build/bench-venv/bin/python" "$benchmark" "$@"
