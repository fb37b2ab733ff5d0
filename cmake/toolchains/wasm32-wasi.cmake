# WebAssembly with 128-bit vectors, as a program for a host that offers WASI. Its C++ library has neither
# exceptions nor threads.
set(zig_target wasm32-wasi)
set(zig_flags -fno-exceptions)
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
set(CONVTRANSPOSE_THREADS OFF CACHE BOOL "")
# Programs see all files, under their own names.
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../../build/venv/bin/python;
    ${CMAKE_CURRENT_LIST_DIR}/../../tests/cross/run_wasi.py;--dir;/)
