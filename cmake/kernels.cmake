# The kernels of the table, kernels/table.py: one command and one object file for each row and ISA. The dispatcher picks by CPU,
# so no wrapper is needed, and neither is a Halide runtime, as kernels allocate nothing, check nothing that the dispatcher has
# not checked, and call nothing.
#
# Sets architecture (x86, arm, arm32 or wasm), has_all_kernels, components, kernel_list, the file that lists the objects for CPUs,
# and for each component and device that is built kernel_objects_<name> and kernel_table_<name>, the C++ source that lists them.
set(CONVTRANSPOSE_TYPES all CACHE STRING "Types to build kernels for: all, or a list of f16, bf16, f32, light, f64 and quantized")
set(CONVTRANSPOSE_FAMILIES all CACHE STRING
    "Families of kernels to build: all, or a list; beside them the reference, which is slow and does everything, always is")
set(CONVTRANSPOSE_ISAS all CACHE STRING
    "ISAs to build kernels for: all of the architecture, native for what this machine's CPU needs alone, or a list")
set(CONVTRANSPOSE_DEVICES "" CACHE STRING "Devices to build kernels for, a list of cuda and opencl")
set(CONVTRANSPOSE_KERNELS_FROM "" CACHE PATH
    "Folder of a build of the same sources for the same machine, whose kernels are taken; empty: build them")
option(CONVTRANSPOSE_TUNED "Build the kernels of schedules/tuned, each for a single layer" ON)

# Python computes which kernels there are, and writes their tables and commands, without any package of its own.
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)
set(processor ${CMAKE_SYSTEM_PROCESSOR})
if(APPLE AND CMAKE_OSX_ARCHITECTURES)
    set(processor ${CMAKE_OSX_ARCHITECTURES})
endif()
set(tuned)
if(CONVTRANSPOSE_TUNED)
    set(tuned --tuned ${PROJECT_SOURCE_DIR}/schedules/tuned)
endif()
set(isas ${CONVTRANSPOSE_ISAS})
if(isas STREQUAL native)
    if(CMAKE_CROSSCOMPILING)
        message(FATAL_ERROR "CONVTRANSPOSE_ISAS=native: this builds for another machine, whose ISAs must be named")
    endif()
    if(NOT CONVTRANSPOSE_NATIVE_ISAS) # asked once, as compiling takes seconds
        set(runtime ${PROJECT_SOURCE_DIR}/runtime)
        try_run(ran compiled SOURCES ${PROJECT_SOURCE_DIR}/cmake/native_isas.cpp ${runtime}/cpu/isa.cpp
                CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${runtime};${runtime}/include;${PROJECT_SOURCE_DIR}"
                CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON
                COMPILE_OUTPUT_VARIABLE said RUN_OUTPUT_VARIABLE isas)
        if(NOT compiled OR NOT ran EQUAL 0)
            message(FATAL_ERROR "CONVTRANSPOSE_ISAS=native: this CPU could not be asked: ${said}")
        endif()
        set(CONVTRANSPOSE_NATIVE_ISAS "${isas}" CACHE INTERNAL "what CONVTRANSPOSE_ISAS=native is on this machine")
    endif()
    set(isas ${CONVTRANSPOSE_NATIVE_ISAS})
    message(STATUS "Kernels for this machine's CPU: ${isas}")
endif()
execute_process(
    COMMAND ${Python3_EXECUTABLE} -E -B -m kernels.generate --output ${CMAKE_CURRENT_BINARY_DIR} --system ${CMAKE_SYSTEM_NAME}
            "--processor=${processor}" "--types=${CONVTRANSPOSE_TYPES}" "--families=${CONVTRANSPOSE_FAMILIES}"
            "--isas=${isas}" "--devices=${CONVTRANSPOSE_DEVICES}" ${tuned}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    RESULT_VARIABLE failed ERROR_VARIABLE said)
if(failed)
    message(FATAL_ERROR "kernels/generate.py: ${said}")
endif()
file(GLOB kernel_scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.py ${PROJECT_SOURCE_DIR}/kernels/*.in
     ${PROJECT_SOURCE_DIR}/kernels/*.json)
file(GLOB tuned_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/schedules/tuned/*.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernel_scripts} ${tuned_kernels})

# The program NAME_generator: one of those in CONVTRANSPOSE_GENERATORS_DIR, which run on this machine whatever is built, or a
# target.
function(_convtranspose_generator variable name)
    set(program ${name}_generator)
    if(CONVTRANSPOSE_GENERATORS_DIR)
        find_program(_convtranspose_found ${program} PATHS ${CONVTRANSPOSE_GENERATORS_DIR} NO_DEFAULT_PATH
                     NO_CMAKE_FIND_ROOT_PATH NO_CACHE REQUIRED)
        set(program ${_convtranspose_found})
    endif()
    set(${variable} ${program} PARENT_SCOPE)
endfunction()

# convtranspose_kernel(isa name program generator emitted parameters...): one object file, by one generator of a program. isa: or
# a device. emitted: kinds of output, as Halide calls them.
function(convtranspose_kernel isa name program generator emitted)
    if(CONVTRANSPOSE_KERNELS_FROM)
        return()
    endif()
    _convtranspose_generator(program ${program})
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/kernels/${isa})
    set(object ${folder}/${name}${kernel_suffix})
    set(outputs ${object})
    if(emitted MATCHES device_code)
        list(APPEND outputs ${folder}/${name}.device_code)
    endif()
    add_custom_command(
        OUTPUT ${outputs}
        # Halide warns that f16 is emulated, which on x86 it always is: its words are kept for failures.
        COMMAND ${program} -g ${generator} -f convt_${name}_${isa} -n ${name} -e ${emitted} -o ${folder} ${ARGN}
                2> ${object}.log || ${CMAKE_COMMAND} -D LOG=${object}.log -P ${PROJECT_SOURCE_DIR}/cmake/kernel_failed.cmake
        DEPENDS ${program}
        COMMENT "Kernel ${name} for ${isa}"
        VERBATIM)
endfunction()

set(folder ${CMAKE_CURRENT_BINARY_DIR})
if(CONVTRANSPOSE_KERNELS_FROM)
    set(folder ${CONVTRANSPOSE_KERNELS_FROM}/runtime)
endif()
set(kernel_list ${folder}/kernels.txt)
include(${CMAKE_CURRENT_BINARY_DIR}/kernels.cmake)
foreach(part IN LISTS components CONVTRANSPOSE_DEVICES)
    list(TRANSFORM kernel_objects_${part} PREPEND ${folder}/kernels/)
    foreach(object IN LISTS kernel_objects_${part})
        if(CONVTRANSPOSE_KERNELS_FROM AND NOT EXISTS ${object})
            message(FATAL_ERROR "CONVTRANSPOSE_KERNELS_FROM: there is no ${object}: build that folder first, with the same "
                                "CONVTRANSPOSE_TYPES, CONVTRANSPOSE_FAMILIES, CONVTRANSPOSE_ISAS and CONVTRANSPOSE_DEVICES")
        endif()
    endforeach()
    set_source_files_properties(${kernel_objects_${part}} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    set(kernel_table_${part} ${CMAKE_CURRENT_BINARY_DIR}/${part}_kernels.cpp)
endforeach()
