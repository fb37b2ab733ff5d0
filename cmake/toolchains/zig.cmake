# Included by toolchain files that have set zig_target, zig_flags, CMAKE_SYSTEM_NAME and CMAKE_SYSTEM_PROCESSOR: Clang, a linker
# and the C++ library of any of those systems, as the wheel `ziglang` brings them (requirements.txt). The host has a POSIX shell.
set(CONVTRANSPOSE_ZIG "${CMAKE_CURRENT_LIST_DIR}/../../build/venv/site-packages/ziglang/zig" CACHE FILEPATH "The program zig")
set(CONVTRANSPOSE_ZIG_CACHE "${CMAKE_CURRENT_LIST_DIR}/../../build/zig" CACHE PATH
    "Folder where zig keeps the C and C++ libraries that it compiles once for each target")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CONVTRANSPOSE_ZIG CONVTRANSPOSE_ZIG_CACHE)
if(NOT EXISTS ${CONVTRANSPOSE_ZIG})
    message(FATAL_ERROR "there is no ${CONVTRANSPOSE_ZIG}: set CONVTRANSPOSE_ZIG, or run scripts/setup.sh")
endif()
get_filename_component(zig_program ${CONVTRANSPOSE_ZIG} REALPATH)
get_filename_component(zig_cache ${CONVTRANSPOSE_ZIG_CACHE} ABSOLUTE)

# zig is one program of many commands, and takes the place of its cache from the environment; CMake wants a program for each.
function(_zig_tool variable command)
    set(tool ${zig_cache}/${zig_target}/${command})
    set(script "#!/bin/sh\nZIG_GLOBAL_CACHE_DIR='${zig_cache}' ZIG_LOCAL_CACHE_DIR='${zig_cache}' exec '${zig_program}' ${command}")
    if(command MATCHES "^c")
        string(APPEND script " -target ${zig_target} ${zig_flags}")
    endif()
    string(APPEND script " \"$@\"\n")
    if(EXISTS ${tool})
        file(READ ${tool} there)
    endif()
    if(NOT script STREQUAL "${there}") # or everything would be compiled again
        file(WRITE ${tool} "${script}")
        file(CHMOD ${tool} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    endif()
    set(${variable} ${tool} PARENT_SCOPE)
endfunction()
_zig_tool(CMAKE_C_COMPILER cc)
_zig_tool(CMAKE_CXX_COMPILER c++)
_zig_tool(CMAKE_AR ar)
_zig_tool(CMAKE_RANLIB ranlib)
_zig_tool(CMAKE_RC_COMPILER rc)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
