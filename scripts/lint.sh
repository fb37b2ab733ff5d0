#!/usr/bin/env bash
# Checks the sources: scripts/lint.sh [--quick] [--fix] [FILE...]
#   C++       format (clang-format) and code (clang-tidy, which takes minutes and needs a build)
#   Python    ruff, by the rules of ruff.toml
#   CMake     cmake-lint, by the rules of .cmake-format.yaml
#   shell     shellcheck
#   comments  none begins with "Of" or "What", nor does a docstring (CONTRIBUTING.md, Language)
#   --quick   everything but clang-tidy, with the tools that are there; ends with 77 if they are not. The test `lint` runs this.
#   --fix     format C++ and mend in Python what ruff can mend, instead of complaining
#   FILE...   check these files only; without any, all files of the repository
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

quick=false
fix=false
while [[ ${1:-} == --* ]]; do
    case $1 in
    --quick) quick=true ;;
    --fix) fix=true ;;
    *) die "no option '$1': see --help" ;;
    esac
    shift
done
tools=$root/build/lint-venv/bin
if $quick; then
    if [[ ! -f $tools/../.complete ]] || ! git rev-parse --git-dir >/dev/null 2>&1; then
        say "Skipped: there is no build/lint-venv (scripts/lint.sh and scripts/test.sh make it), or this is no git repository"
        exit 77
    fi
else
    make_environment build/lint-venv requirements-lint.txt
fi

files=("$@")
if ((${#files[@]} == 0)); then
    mapfile -t files < <(git ls-files --cached --others --exclude-standard)
fi
sources=() units=() pythons=() cmakes=() shells=()
for file in "${files[@]}"; do
    [[ -f $file ]] || continue # deleted, but not yet in a commit
    case $file in
    *.cpp) sources+=("$file") units+=("$PWD/${file#"$PWD/"}") ;;
    *.c | *.h | *.hpp) sources+=("$file") ;;
    *.py) pythons+=("$file") ;;
    *.cmake | CMakeLists.txt | */CMakeLists.txt) cmakes+=("$file") ;;
    *.sh | .ci/*) shells+=("$file") ;;
    esac
done

status=0
commented=("${sources[@]}" "${pythons[@]}" "${cmakes[@]}" "${shells[@]}")
if ((${#commented[@]})); then
    say "comments: ${#commented[@]} files"
    if grep -nHE '(^\s*(///?|/\*\*?|#) |""")(Of|What|Whose) ' "${commented[@]}"; then
        echo "  a comment is a sentence with a subject: see CONTRIBUTING.md, Language"
        status=1
    fi
fi
if ((${#shells[@]})); then
    say "shellcheck: ${#shells[@]} scripts"
    "$tools/shellcheck" --external-sources "${shells[@]}" || status=1
fi
if ((${#pythons[@]})); then
    say "ruff: ${#pythons[@]} files"
    mend=()
    if $fix; then mend=(--fix); fi
    "$tools/ruff" check --quiet --no-cache --output-format concise "${mend[@]}" "${pythons[@]}" || status=1
fi
if ((${#cmakes[@]})); then
    say "cmake-lint: ${#cmakes[@]} files"
    "$tools/cmake-lint" --suppress-decorations "${cmakes[@]}" || status=1
fi
if ((${#sources[@]})); then
    say "clang-format: ${#sources[@]} files"
    if $fix; then
        "$tools/clang-format" -i "${sources[@]}"
    else
        # It complains of each place; which file it is will do.
        mapfile -t unformatted < <("$tools/clang-format" --dry-run "${sources[@]}" 2>&1 |
            sed -nE 's/^([^: ]+):.*Wclang-format-violations.*/\1/p' | sort -u)
        if ((${#unformatted[@]})); then
            printf '  not formatted: scripts/lint.sh --fix %s\n' "${unformatted[@]}"
            status=1
        fi
    fi
fi

# tidy FILE, with the repository as $0: run by xargs, several at a time.
# shellcheck disable=SC2317  # it is reached, by xargs
tidy() {
    # On stderr it counts the warnings of every system header; what it finds in ours goes to stdout.
    # The standard is said because a compiler whose default it is gets no flag for it.
    local ours='bench|bindings|generators|kernel_contract|runtime|schedules|tests|tools'
    clang-tidy -p "$0/build/tidy" --quiet --header-filter="^$0/($ours)/" --extra-arg=-std=c++17 "$1" \
        2> >(grep -vE '^[0-9]+ (warning|error)s? ' >&2) || return 1
    echo "  ${1#"$0/"}"
}

if ((${#units[@]})) && ! $quick; then
    # Not in setup.sh: neither the build nor the tests need it.
    need_packages clang-tidy
    # Built first, for the headers that the build generates.
    scripts/setup.sh
    scripts/build.sh
    mkdir -p build/tidy
    "$venv/bin/python" scripts/tidy_commands.py build/compile_commands.json build/tidy/compile_commands.json
    # Only what the build compiles: clang-tidy would guess the flags of another file.
    compiled=()
    for unit in "${units[@]}"; do
        if grep -qF "\"file\": \"$unit\"" build/tidy/compile_commands.json; then compiled+=("$unit"); fi
    done
    ((${#compiled[@]})) || die "the build compiles none of ${units[*]}"
    say "clang-tidy: ${#compiled[@]} files"
    export -f tidy
    printf '%s\0' "${compiled[@]}" | xargs -0 -r -n 1 -P "$(nproc)" bash -c 'tidy "$@"' "$root" || status=1
fi
((status == 0)) && say "no complaints"
exit "$status"
