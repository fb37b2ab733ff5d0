# Included by the toolchain files for wheels, which have set CMAKE_SYSTEM_PROCESSOR: Linux with glibc 2.28 or later, which is what
# manylinux_2_28 means. Debian has the compiler of that processor installed, for its libgcc_s and its strip.
set(CMAKE_SYSTEM_NAME Linux)
set(zig_target ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.2.28)

# Debian's Python includes its pyconfig.h from a folder that is called after the processor. That of the machine that builds serves
# others of 64 bits too; Debian's headers of C are not seen.
set(python_headers ${CMAKE_CURRENT_LIST_DIR}/../../build/zig/python/${CMAKE_SYSTEM_PROCESSOR})
file(MAKE_DIRECTORY ${python_headers})
file(CREATE_LINK /usr/include/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu ${python_headers}/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu
     SYMBOLIC)
get_filename_component(python_headers ${python_headers} ABSOLUTE)
set(zig_flags "-isystem ${python_headers}")
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)

# Python ends threads by unwinding their stacks with libgcc_s, which must not meet the unwinder that zig would link into a library.
# A library that zig links does not end what it began when it is unloaded, so it stays. Symbols are left out (-s).
execute_process(COMMAND ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu-g++ -print-file-name=libgcc_s.so.1 OUTPUT_VARIABLE libgcc_s
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-s -Wl,-z,nodelete ${libgcc_s}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-s -Wl,-z,nodelete ${libgcc_s}")
find_program(CMAKE_STRIP ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu-strip)
