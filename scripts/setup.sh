#!/usr/bin/env bash
# Installs what the build, the demo and the tests need on a Debian 12 that may have nothing but git and a shell:
# Debian packages, by apt, and a Python environment in build/venv from requirements.txt. Run again, it does nothing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

need_packages \
    ca-certificates g++ python3 python3-dev python3-venv \
    libprotobuf-dev protobuf-compiler nlohmann-json3-dev libcli11-dev \
    libgtest-dev pkgconf

make_environment build/venv requirements.txt
