# 32-bit ARM Linux with NEON by Debian's cross-compiler (g++-arm-linux-gnueabihf). What is built is run by qemu-user, as a
# Cortex-A15.
set(CMAKE_SYSTEM_PROCESSOR armv7)
set(debian_target arm-linux-gnueabihf)
set(emulator qemu-arm;-cpu;cortex-a15)
include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
