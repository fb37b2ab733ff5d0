#!/usr/bin/env bash
# Checks format (clang-format), code (clang-tidy) and scripts (shellcheck): scripts/lint.sh [--fix] [FILE...]
#   --fix     format the sources in place instead of complaining
#   FILE...   these only; without any, all of ours
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

fix=false
if [[ ${1:-} == --fix ]]; then
    fix=true
    shift
fi
scripts/setup.sh
# Not in setup.sh: neither the build nor the tests need these.
need_packages clang-format clang-tidy shellcheck

# tidy FILE, with the repository as $0: run by xargs, several at a time.
# shellcheck disable=SC2317  # it is reached, by xargs
tidy() {
    # On stderr it counts the warnings of every system header; what it finds in ours goes to stdout.
    # The standard is said because a compiler whose default it is gets no flag for it.
    clang-tidy -p "$0/build/tidy" --quiet --header-filter="^$0/(generators|schedules|runtime|tools|tests|bench)/" \
        --extra-arg=-std=c++17 "$1" 2> >(grep -vE '^[0-9]+ (warning|error)s? ' >&2) || return 1
    echo "  ${1#"$0/"}"
}

files=("$@")
if ((${#files[@]} == 0)); then
    mapfile -t files < <(git ls-files --cached --others --exclude-standard)
fi
sources=() units=() shells=()
for file in "${files[@]}"; do
    [[ -f $file ]] || continue # deleted, but not yet in a commit
    case $file in
    *.cpp) sources+=("$file") units+=("$PWD/${file#"$PWD/"}") ;;
    *.h | *.hpp) sources+=("$file") ;;
    *.sh | .ci/*) shells+=("$file") ;;
    esac
done

status=0
if ((${#shells[@]})); then
    say "shellcheck: ${#shells[@]} scripts"
    shellcheck --external-sources "${shells[@]}" || status=1
fi
if ((${#sources[@]})); then
    say "clang-format: ${#sources[@]} files"
    if $fix; then
        clang-format -i "${sources[@]}"
    else
        for file in "${sources[@]}"; do
            clang-format "$file" | cmp --silent - "$file" && continue
            echo "  $file is not formatted: scripts/lint.sh --fix $file"
            status=1
        done
    fi
fi
if ((${#units[@]})); then
    # Built first, for the headers that the build generates.
    scripts/build.sh
    # Without the headers that the compiler has precompiled, in a form of its own.
    mkdir -p build/tidy
    sed -E 's/-Winvalid-pch -include [^ ]+//' build/compile_commands.json >build/tidy/compile_commands.json
    # Only what the build compiles: clang-tidy would guess the flags of another file.
    compiled=()
    for unit in "${units[@]}"; do
        if grep -qF "\"file\": \"$unit\"" build/compile_commands.json; then compiled+=("$unit"); fi
    done
    ((${#compiled[@]})) || die "the build compiles none of ${units[*]}"
    say "clang-tidy: ${#compiled[@]} files"
    export -f tidy
    printf '%s\0' "${compiled[@]}" | xargs -0 -r -n 1 -P "$(nproc)" bash -c 'tidy "$@"' "$root" || status=1
fi
((status == 0)) && say "no complaints"
exit "$status"
