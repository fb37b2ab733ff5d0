# Wheels for Linux on x86-64 (scripts/wheel.sh --manylinux).
set(CMAKE_SYSTEM_PROCESSOR x86_64)
include(${CMAKE_CURRENT_LIST_DIR}/manylinux.cmake)
