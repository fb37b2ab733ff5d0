# Components of the library for devices: from the table of variants_gpu.cmake one object for each, which holds the kernels,
# Halide's runtime for that device and our calls of its driver, and whose only global symbol is its table. So Halide's
# symbols, some of which are overridden, meet none of another Halide runtime in the same program.
set(CONVTRANSPOSE_DEVICES "" CACHE STRING "Devices to build kernels for, of cuda and opencl, a list")

include(variants_gpu)

set(halide_features_cuda cuda-cuda_capability_70)
set(halide_features_opencl opencl)
set(halide_features_opencl_f64 -cl_doubles) # which not every device has
set(halide_dtype_u8 uint8)

# _convtranspose_device_kernel(name generator extra block row params...): for each device one object, and a row of its table. block:
# of threads, for bench/gpu.
function(_convtranspose_device_kernel name generator extra block row)
    set_property(DIRECTORY APPEND_STRING PROPERTY CONVTRANSPOSE_DEVICE_BLOCKS ",\n\"${name}\": [${block}]")
    foreach(device IN LISTS CONVTRANSPOSE_DEVICES)
        set(folder ${CMAKE_CURRENT_BINARY_DIR}/kernels/${device})
        set(object ${folder}/${name}.o)
        set(outputs -e object)
        set(ptx)
        if(device STREQUAL cuda)
            set(outputs -e object,device_code) # PTX, for tests/gpu
            set(ptx ${folder}/${name}.device_code)
        endif()
        set(function convt_${name}_${device})
        set(features ${halide_features_${device}})
        if(name MATCHES "_f64")
            string(APPEND features "${halide_features_${device}_f64}")
        endif()
        # With asserts, which are how a kernel notices that its device failed.
        add_custom_command(
            OUTPUT ${object} ${ptx}
            COMMAND ${generator_command_gpu} -g ${generator} -f ${function} -n ${name} ${outputs} -o ${folder}
                    target=x86-64-${os}-${features}-user_context-no_runtime-no_bounds_query${extra}
                    ${ARGN}
                    2> ${object}.log || ${CMAKE_COMMAND} -D LOG=${object}.log -P ${PROJECT_SOURCE_DIR}/cmake/kernel_failed.cmake
            DEPENDS ${generator_depends_gpu}
            COMMENT "Kernel ${name} for ${device}"
            VERBATIM)
        set_property(DIRECTORY APPEND PROPERTY CONVTRANSPOSE_DEVICE_OBJECTS_${device} ${object})
        set_property(DIRECTORY APPEND_STRING PROPERTY CONVTRANSPOSE_DEVICE_DECLARATIONS_${device}
                     "int ${function}_argv(void **);\n")
        set_property(DIRECTORY APPEND_STRING PROPERTY CONVTRANSPOSE_DEVICE_ROWS_${device}
                     "    {\"${name}\", ${row}, ${function}_argv},\n")
    endforeach()
endfunction()

function(convtranspose_tiled family dtype tile)
    cmake_parse_arguments(PARSE_ARGV 3 arg "CHANNELS_LAST;DOTS" "CHUNK;Y" "SIDES")
    if(NOT arg_CHUNK)
        set(arg_CHUNK 8)
    endif()
    if(NOT arg_Y)
        set(arg_Y ${dtype})
    endif()
    set(side_params)
    set(threads 1)
    foreach(side factors IN ZIP_LISTS sides_of_tile arg_SIDES)
        string(REPLACE x ";" factors ${factors})
        list(GET factors 0 vector)
        list(GET factors 1 side_threads)
        list(GET factors 2 unrolled)
        list(APPEND side_params ${side}_vector=${vector} ${side}_threads=${side_threads} ${side}_unrolled=${unrolled})
        math(EXPR tile_${side} "${vector} * ${side_threads} * ${unrolled}")
        math(EXPR threads "${threads} * ${side_threads}")
    endforeach()
    set(integers false)
    if(dtype STREQUAL u8)
        set(integers true)
    endif()
    set(block 1)
    if(arg_DOTS)
        set(block 4)
    endif()
    math(EXPR channels_of_chunk "${arg_CHUNK} * ${block}")
    set(channels_last false)
    if(arg_CHANNELS_LAST)
        set(channels_last true)
    endif()
    list(GET arg_SIDES 0 oc_factors)
    list(GET arg_SIDES 1 p_factors)
    string(REGEX REPLACE "^[0-9]+x([0-9]+)x.*" "\\1" oc_threads ${oc_factors})
    string(REGEX REPLACE "^[0-9]+x([0-9]+)x.*" "\\1" p_threads ${p_factors})
    set(enum_family_tiled kTiled)
    set(enum_family_few kFew)
    string(TOUPPER "CONVT_${dtype}, CONVT_${arg_Y}" types)
    string(CONCAT row "DeviceFamily::${enum_family_${family}}, ${integers}, ${channels_last}, ${types}, ${tile_oc}, ${tile_p}, "
           "${channels_of_chunk}, ${block}, ${threads}")
    _convtranspose_device_kernel(${family}_${dtype}_${tile} gpu_by_residue "" "${p_threads}, ${oc_threads}"
        "${row}"
        family=${family} integers=${integers} channels_last=${channels_last} x_type=${halide_dtype_${dtype}}
        y_type=${halide_dtype_${arg_Y}} chunk=${arg_CHUNK} block=${block} ${side_params})
endfunction()
set(sides_of_tile oc p)

function(convtranspose_each)
    foreach(dtype IN LISTS ARGN)
        set(integers false)
        set(x ${dtype})
        set(y ${dtype})
        if(dtype MATCHES "^u8")
            set(integers true)
            set(x u8)
            string(REGEX REPLACE "^u8_" "" y ${dtype})
        endif()
        string(TOUPPER "CONVT_${x}, CONVT_${y}" types)
        foreach(order planar channels)
            set(channel_threads 1)
            set(position_threads 256)
            set(along_channels false)
            if(order STREQUAL channels)
                set(channel_threads 32)
                set(position_threads 8)
                set(along_channels true)
            endif()
            _convtranspose_device_kernel(each_${dtype}_${order} gpu_by_output "" "${channel_threads}, ${position_threads}"
                "DeviceFamily::kEach, ${integers}, ${along_channels}, ${types}, ${channel_threads}, ${position_threads}, 1, 1, 256"
                integers=${integers} x_type=${halide_dtype_${x}} y_type=${halide_dtype_${y}}
                channel_threads=${channel_threads} position_threads=${position_threads})
        endforeach()
    endforeach()
endfunction()

function(convtranspose_combine)
    cmake_parse_arguments(arg "" "PARTS;Y" "" ${ARGN})
    string(TOUPPER "CONVT_${arg_PARTS}, CONVT_${arg_Y}" types)
    set(name combine_${arg_Y})
    if(NOT arg_PARTS STREQUAL arg_Y)
        set(name combine_${arg_PARTS}_${arg_Y})
    endif()
    # Strict, for NaNs, and for sums whose order matters.
    _convtranspose_device_kernel(${name} gpu_combine -strict_float "256, 1"
        "DeviceFamily::kCombine, false, false, ${types}, 1, 1, 1, 1, 256"
        part_type=${halide_dtype_${arg_PARTS}} y_type=${halide_dtype_${arg_Y}})
endfunction()

# convtranspose_devices(): for each of CONVTRANSPOSE_DEVICES sets device_object_<device>, its one object.
function(convtranspose_devices)
    foreach(device IN LISTS CONVTRANSPOSE_DEVICES)
        if(NOT device MATCHES "^(cuda|opencl)$")
            message(FATAL_ERROR "CONVTRANSPOSE_DEVICES: there is no '${device}'; there are cuda opencl")
        endif()
    endforeach()
    if(CONVTRANSPOSE_DEVICES AND NOT (architecture STREQUAL x86 AND CMAKE_SYSTEM_NAME STREQUAL Linux))
        message(FATAL_ERROR "CONVTRANSPOSE_DEVICES: only for x86-64 Linux so far")
    endif()
    if(CONVTRANSPOSE_DEVICES AND CONVTRANSPOSE_GENERATORS_DIR)
        find_program(CONVTRANSPOSE_gpu_GENERATOR gpu_generator PATHS ${CONVTRANSPOSE_GENERATORS_DIR} NO_DEFAULT_PATH
                     NO_CMAKE_FIND_ROOT_PATH REQUIRED)
        set(generator_command_gpu ${CONVTRANSPOSE_gpu_GENERATOR})
        set(generator_depends_gpu ${CONVTRANSPOSE_gpu_GENERATOR})
    else()
        set(generator_command_gpu gpu_generator)
        set(generator_depends_gpu gpu_generator)
    endif()
    convtranspose_device_table()
    get_property(blocks DIRECTORY PROPERTY CONVTRANSPOSE_DEVICE_BLOCKS)
    if(blocks)
        string(SUBSTRING "${blocks}" 1 -1 blocks)
        file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/kernels/blocks.json CONTENT "{${blocks}\n}\n" @ONLY)
    endif()
    foreach(device IN LISTS CONVTRANSPOSE_DEVICES)
        set(folder ${CMAKE_CURRENT_BINARY_DIR}/kernels/${device})
        file(MAKE_DIRECTORY ${folder})
        get_property(objects DIRECTORY PROPERTY CONVTRANSPOSE_DEVICE_OBJECTS_${device})
        get_property(declarations DIRECTORY PROPERTY CONVTRANSPOSE_DEVICE_DECLARATIONS_${device})
        get_property(rows DIRECTORY PROPERTY CONVTRANSPOSE_DEVICE_ROWS_${device})
        set(table ${CMAKE_CURRENT_BINARY_DIR}/${device}_kernels.cpp)
        configure_file(${PROJECT_SOURCE_DIR}/cmake/device_table.cpp.in ${table} @ONLY)
        set(runtime ${folder}/halide_runtime_${device}.o)
        add_custom_command(
            OUTPUT ${runtime}
            COMMAND ${generator_command_gpu} -r halide_runtime_${device} -e object -o ${folder}
                    target=x86-64-${os}-${halide_features_${device}}
            DEPENDS ${generator_depends_gpu}
            COMMENT "Halide's runtime for ${device}"
            VERBATIM)
        add_library(convtranspose_${device}_parts OBJECT ${table} ${CMAKE_CURRENT_SOURCE_DIR}/gpu/${device}_backend.cpp)
        _convtranspose_own(convtranspose_${device}_parts)
        # Nothing in it may be shared with other objects, what sanitizers add included. Halide calls some of it back.
        target_compile_options(convtranspose_${device}_parts PRIVATE -fno-exceptions -fno-rtti -fno-sanitize=all
                               -fvisibility=default)
        set(linked ${folder}/${device}_with_halide.o)
        set(sealed ${folder}/${device}.o)
        add_custom_command(
            OUTPUT ${sealed}
            COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${linked} $<TARGET_OBJECTS:convtranspose_${device}_parts>
                    ${objects} ${runtime}
            COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=convt_${device}_kernels ${linked} ${sealed}
            DEPENDS convtranspose_${device}_parts $<TARGET_OBJECTS:convtranspose_${device}_parts> ${objects} ${runtime}
            COMMENT "Component ${device}"
            COMMAND_EXPAND_LISTS VERBATIM)
        set_source_files_properties(${sealed} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
        set(device_object_${device} ${sealed} PARENT_SCOPE)
    endforeach()
endfunction()
