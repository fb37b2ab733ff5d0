# The flags that our own code is compiled with. Link privately: consumers are not held to them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "MSVC") # MSVC by itself is a variable
    message(FATAL_ERROR "CMAKE_CXX_COMPILER is '${CMAKE_CXX_COMPILER}', which lacks builtins of GCC and Clang that the library "
                        "uses: take clang-cl, or GCC or Clang of MinGW")
endif()
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
set(convtranspose_exact_floats -fno-fast-math)
if(CMAKE_CXX_COMPILER_FRONTEND_VARIANT STREQUAL "MSVC") # clang-cl, which takes -Wall for all warnings that there are
    set(warnings -W4)
    set(convtranspose_exact_floats /fp:precise)
endif()
# CMake would make errors of warnings in sources of others too.
if(CMAKE_COMPILE_WARNING_AS_ERROR)
    list(APPEND warnings -Werror)
endif()
set(CMAKE_COMPILE_WARNING_AS_ERROR OFF)
add_library(convtranspose_warnings INTERFACE)
target_compile_options(convtranspose_warnings INTERFACE
    ${warnings}
    $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>) # notes, on 32-bit ARM, of how GCC passed arguments before version 7.1
