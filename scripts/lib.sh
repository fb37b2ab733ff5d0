# shellcheck shell=bash
# Functions that the scripts share. This file is sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # used by those that source this
venv=$root/build/venv # made by setup.sh

# Inherited by the scripts that a script calls, so that the times shown are those of the whole run.
export CONVTRANSPOSE_STARTED=${CONVTRANSPOSE_STARTED:-$EPOCHSECONDS}

elapsed() { echo $((EPOCHSECONDS - CONVTRANSPOSE_STARTED)); }

say() { printf '[%4d s] %s\n' "$(elapsed)" "$*"; }

heading() { printf '\n[%4d s] ==== %s ====\n' "$(elapsed)" "$*"; }

# help_if_asked OPTION...: for -h or --help prints what the calling script's first comment says of it, and ends the script.
help_if_asked() {
    local option
    for option; do
        [[ $option == -h || $option == --help ]] || continue
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
    done
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# logged NAME TITLE COMMAND...: runs a command that says too much, or nothing for long. Its output goes to
# build/log/NAME.log; shown are the title, every 10 seconds the log's last line, and the log's end if the command fails.
# Returns the command's status.
logged() {
    local log=$root/build/log/$1.log title=$2 status=0 heartbeat
    shift 2
    mkdir -p "$root/build/log"
    : >"$log"
    say "$title"
    # The command stays in the foreground, so that Ctrl-C reaches it; the heartbeat ends with this shell.
    while sleep 10 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        say "  ... $(tail -n 1 "$log" | tr -d '\r' | cut -c 1-100)"
    done &
    heartbeat=$!
    "$@" >"$log" 2>&1 || status=$?
    kill "$heartbeat" 2>/dev/null || true
    wait "$heartbeat" 2>/dev/null || true
    if ((status)); then
        tail -n 30 "$log" >&2
        say "failed: $title (the whole output is in $log)" >&2
    fi
    return "$status"
}

# need_packages NAME...: installs by apt those Debian packages that are missing, and does nothing if none is.
need_packages() {
    local installed missing=() package as_root=()
    if ! command -v dpkg-query >/dev/null; then
        say "not a Debian system: this relies on your own $*"
        return
    fi
    # dpkg-query fails if it knows nothing of one of them, and lists the others all the same.
    installed=$(dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
    for package in "$@"; do
        [[ $'\n'$installed$'\n' == *$'\n'"$package installed"$'\n'* ]] || missing+=("$package")
    done
    ((${#missing[@]})) || return 0

    if ((EUID != 0)); then
        # Without a terminal sudo cannot ask for a password: then it must not need one.
        if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
            as_root=(sudo)
        else
            die "packages are missing and this user cannot install them. As root, run:
    apt-get update && apt-get install --no-install-recommends -y ${missing[*]}"
        fi
    fi
    # `env` because sudo drops the environment; the time-out waits for another apt instead of failing beside it.
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600)
    # Not fatal: the lists that are there may do, and if not, the next step fails.
    logged apt-update "apt-get update" "${apt[@]}" update || true
    logged apt-install "apt-get install ${missing[*]}" "${apt[@]}" install --no-install-recommends -y "${missing[@]}"
}

# configure_devices [DEVICES]: has build/ make the kernels for devices too, from now on; opencl;cuda unless it is told opencl.
configure_devices() {
    local devices=${1:-opencl;cuda}
    [[ -f $root/build/build.ninja ]] || logged configure-release "cmake --preset release" "$venv/bin/cmake" --preset release
    grep -qE "^CONVTRANSPOSE_DEVICES:STRING=($devices|opencl;cuda)\$" "$root/build/CMakeCache.txt" ||
        logged configure-devices "kernels for $devices" "$venv/bin/cmake" "$root/build" -D "CONVTRANSPOSE_DEVICES=$devices"
}

# make_environment FOLDER REQUIREMENTS: a Python environment with exactly those packages; nothing if it is there.
make_environment() {
    local folder=$1 requirements=$2 name stamp wanted python packages
    name=$(basename "$folder")
    # Written last, so an environment without it was left half-made. An environment holds its own path, so it also goes
    # stale when the repository is moved.
    stamp=$root/$folder/.complete
    wanted="$root $(cat "$root/$requirements" "$root/scripts/lib.sh" | sha256sum)"
    if [[ -x $root/$folder/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]]; then
        return 0
    fi

    # Debian's own Python first: one that a version manager puts on PATH may be any version, or lack its shared library.
    python=/usr/bin/python3
    [[ -x $python ]] || python=$(command -v python3) || die "there is no python3"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$python is too old: 3.11 or later is needed"

    # A complete environment is brought up to date in place, which keeps the files (and so the build) that did not change.
    if [[ ! -x $root/$folder/bin/python || ! -f $stamp || $(<"$stamp") != "$root "* ]]; then
        rm -rf "${root:?}/$folder"
        logged "$name" "Python environment in $folder ($("$python" --version))" "$python" -m venv "$root/$folder"
    fi
    rm -f "$stamp"
    logged "$name-pip" "pip install -r $requirements" \
        "$root/$folder/bin/python" -m pip install --no-input --disable-pip-version-check --progress-bar off \
        --only-binary :all: --requirement "$root/$requirements"

    # A path without the Python version in it, for CMakePresets.json.
    packages=$("$root/$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    ln -sfn "${packages#"$root/$folder/"}" "$root/$folder/site-packages"
    echo "$wanted" >"$stamp"
    say "$folder is complete"
}
