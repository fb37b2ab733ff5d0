# Wheels for Linux on 64-bit ARM (scripts/wheel.sh --manylinux).
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/manylinux.cmake)
