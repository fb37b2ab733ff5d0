# 64-bit ARM Linux by Debian's cross-compiler (g++-aarch64-linux-gnu). What is built is run by qemu-user, as a CPU that has all
# that the kernels use: a Cortex-A76. A Cortex-A53 has the least that a 64-bit ARM CPU can have.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(debian_target aarch64-linux-gnu)
set(emulator qemu-aarch64;-cpu;cortex-a76)
set(old_cpu_emulator qemu-aarch64;-cpu;cortex-a53)
include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
