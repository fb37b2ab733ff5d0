#!/usr/bin/env bash
# Installs what the build, the demo and the tests need on a Debian 12 that may have nothing but git and a shell:
# Debian packages, by apt, and a Python environment in build/venv from requirements.txt. Run again, it does nothing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

need_packages \
    ca-certificates g++ python3 python3-venv \
    libprotobuf-dev protobuf-compiler nlohmann-json3-dev libcli11-dev \
    libgtest-dev pkgconf

# Written last, so an environment without it was left half-made. An environment holds its own path, so it also goes stale
# when the repository is moved.
stamp=$venv/.complete
wanted="$root $(cat requirements.txt scripts/setup.sh | sha256sum)"
if [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]]; then
    exit 0
fi

# Debian's own Python first: one that a version manager puts on PATH may be any version, or lack its shared library.
python=/usr/bin/python3
[[ -x $python ]] || python=$(command -v python3) || die "there is no python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$python is too old: 3.11 or later is needed"

# A complete environment is brought up to date in place, which keeps the files (and so the build) that did not change.
if [[ ! -x $venv/bin/python || ! -f $stamp || $(<"$stamp") != "$root "* ]]; then
    rm -rf "$venv"
    logged venv "Python environment in build/venv ($("$python" --version))" "$python" -m venv "$venv"
fi
rm -f "$stamp"
logged pip "pip install -r requirements.txt" \
    "$venv/bin/python" -m pip install --no-input --disable-pip-version-check --progress-bar off \
    --only-binary :all: --requirement requirements.txt

# A path without the Python version in it, for CMakePresets.json.
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
ln -sfn "${packages#"$venv/"}" "$venv/site-packages"
echo "$wanted" >"$stamp"
say "set-up complete"
