# 64-bit ARM Linux by Debian's cross-compiler (g++-aarch64-linux-gnu). What is built is run by qemu-user, as a CPU that has all
# that the kernels use: a Cortex-A76. A Cortex-A53 has the least that a 64-bit ARM CPU can have.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR env;QEMU_LD_PREFIX=/usr/aarch64-linux-gnu;qemu-aarch64;-cpu;cortex-a76)
set(CONVTRANSPOSE_OLD_CPU_EMULATOR env;QEMU_LD_PREFIX=/usr/aarch64-linux-gnu;qemu-aarch64;-cpu;cortex-a53)
list(APPEND CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
