# Windows on 64-bit ARM, with the C runtime of Windows 10 and MinGW's conventions.
set(zig_target aarch64-windows-gnu)
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR ARM64)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
