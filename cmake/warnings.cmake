# The flags that our own code is compiled with. Link privately: consumers are not held to them.
add_library(convtranspose_warnings INTERFACE)
target_compile_options(convtranspose_warnings INTERFACE
    $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion;-Werror>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi> # notes, on 32-bit ARM, of how GCC passed arguments before version 7.1
    $<$<CXX_COMPILER_ID:MSVC>:/W4;/WX>)
