#!/usr/bin/env bash
# Fuzzes each target of tests/fuzz for so many minutes: scripts/fuzz.sh MINUTES [TARGET...]
#   TARGET   interface, input_shape, line, onnx, tensor or tuning; without any, all of them, one after the other
# Inputs that reached something new are kept in build/fuzz/corpus, for the next time. An input that shows a fault is kept in
# build/fuzz/artifacts; `CONVTRANSPOSE_FUZZ_PRINT=1 build/fuzz/build/fuzz_TARGET FILE` repeats it and says what is tried.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

minutes=${1:?minutes for each target: see --help}
[[ $minutes =~ ^[0-9]+$ ]] || die "'$minutes' is not a number of minutes"
shift
targets=("$@")
((${#targets[@]})) || targets=(interface input_shape line onnx tensor tuning)

need_packages clang libclang-rt-14-dev
scripts/build.sh release
"$venv/bin/ctest" --preset release -R '^fuzz\.(build|corpus|targets)$' --output-on-failure
export UBSAN_OPTIONS=print_stacktrace=1
status=0
for target in "${targets[@]}"; do
    [[ -x build/fuzz/build/fuzz_$target ]] || die "there is no target $target"
    if ! logged "fuzz-$target" "$target, $minutes min" "build/fuzz/build/fuzz_$target" \
        -max_total_time=$((60 * minutes)) -timeout=20 -rss_limit_mb=2048 -max_len=1000 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/artifacts/$target-" "build/fuzz/corpus/$target"; then
        status=1
    fi
    say "  $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/log/fuzz-$target.log") executions"
done
exit "$status"
