#!/usr/bin/env bash
# Makes the API reference from the public headers, by Doxygen, Breathe and Sphinx: scripts/docs.sh [--quick]
# It is in build/docs/index.html then. A warning is an error.
#   --quick   with the tools that are there; ends with 77 if they are not. The test docs.Api runs this.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"

if [[ ${1:-} == --quick ]]; then
    if ! command -v doxygen >/dev/null || [[ ! -f build/docs-venv/.complete ]]; then
        say "Skipped: there is no doxygen, or no build/docs-venv (scripts/docs.sh installs both)"
        exit 77
    fi
else
    # Not in setup.sh: neither the build nor the tests need these.
    need_packages doxygen
    make_environment build/docs-venv requirements-docs.txt
fi
mkdir -p build/docs-xml
rm -rf build/docs build/docs-xml/xml
{
    cat docs/api/Doxyfile
    echo "OUTPUT_DIRECTORY = build/docs-xml"
} | logged doxygen "doxygen" doxygen -
export CONVTRANSPOSE_DOXYGEN_XML=$root/build/docs-xml/xml
logged sphinx "sphinx" build/docs-venv/bin/python -m sphinx -W --keep-going -q -E -d build/docs-xml/doctrees docs/api build/docs
say "build/docs/index.html is complete"
