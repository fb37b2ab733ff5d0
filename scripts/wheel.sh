#!/usr/bin/env bash
# Makes a wheel of the Python package for this machine's architecture, in build/wheel: what is in build/ already is not built
# again. auditwheel puts into it the libraries that other machines may lack, and says which Linux it runs on.
#   --check             installs it where there is no compiler, and runs the tests of its execution provider in several versions of
#                       ONNX Runtime, which pip downloads
#   --manylinux [ARCH]  builds all but the command line again, by zig, for Linux with glibc 2.28 or later on ARCH: x86_64 (the
#                       default) or aarch64
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
help_if_asked "$@"
cd "$root"
arch=
case ${1:-} in
'' | --check) ;;
--manylinux) arch=${2:-x86_64} ;;
*) die "no option '$1': see --help" ;;
esac

scripts/setup.sh
scripts/build.sh release
# The cache of build/ is that of the tests too.
folder=build
definitions=(CONVTRANSPOSE_BUILD_TESTS=ON)
if [[ $arch ]]; then
    [[ $arch == x86_64 || $arch == aarch64 ]] || die "no architecture '$arch': x86_64 or aarch64"
    [[ $arch == "$(uname -m)" ]] || need_packages "g++-${arch/_/-}-linux-gnu"
    folder=build-manylinux-$arch
    definitions=("CMAKE_TOOLCHAIN_FILE=$root/cmake/toolchains/manylinux-$arch.cmake" CONVTRANSPOSE_BUILD_TOOLS=OFF
        "CONVTRANSPOSE_GENERATORS_DIR=$root/build/bin"
        "CONVTRANSPOSE_HALIDE_INCLUDE=$venv/site-packages/halide/include"
        "CONVTRANSPOSE_PYTHON_STUB=$root/build/bindings/python/convtranspose/_native.pyi")
    # By these scikit-build-core names the module and the wheel.
    soabi=$("$venv/bin/python" -c 'import sys; print("cpython-%d%d" % sys.version_info[:2])')
    export _PYTHON_HOST_PLATFORM=linux-$arch SETUPTOOLS_EXT_SUFFIX=.$soabi-$arch-linux-gnu.so
fi
rm -rf build/wheel
PATH=$venv/bin:$PATH logged wheel "pip wheel" "$venv/bin/python" -m pip wheel . --no-deps --no-build-isolation \
    --wheel-dir build/wheel/raw "--config-settings=build-dir=$folder" \
    "${definitions[@]/#/--config-settings=cmake.define.}"
PATH=$venv/bin:$PATH logged auditwheel "auditwheel repair" "$venv/bin/auditwheel" repair --wheel-dir build/wheel build/wheel/raw/*.whl
for wheel in build/wheel/*.whl; do
    say "$wheel, $(($(stat -c %s "$wheel") / 1000000)) MB"
    [[ ${1:-} == --check ]] || continue
    say "$(tests/python/first_result.sh "$wheel")"
    "$venv/bin/python" -m zipfile --extract "$wheel" build/wheel/unpacked
    CONVTRANSPOSE_PYTHONPATH=$root/build/wheel/unpacked tests/onnxruntime/versions.sh
done
