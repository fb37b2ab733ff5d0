# Components of the library for devices: for each of CONVTRANSPOSE_DEVICES one object, which holds the kernels of
# kernels/table.py, Halide's runtime for that device and our calls of its driver, and whose only global symbol is its table. So
# Halide's symbols, some of which are overridden, meet none of another Halide runtime in the same program.

# convtranspose_devices(): for each device sets device_object_<device>, its one object.
function(convtranspose_devices)
    foreach(device IN LISTS CONVTRANSPOSE_DEVICES)
        set(folder ${CMAKE_CURRENT_BINARY_DIR}/kernels/${device})
        set(runtime ${folder}/halide_runtime_${device}.o)
        if(CONVTRANSPOSE_KERNELS_FROM)
            set(runtime ${CONVTRANSPOSE_KERNELS_FROM}/runtime/kernels/${device}/halide_runtime_${device}.o)
            file(MAKE_DIRECTORY ${folder})
        else()
            _convtranspose_generator(generator gpu)
            add_custom_command(
                OUTPUT ${runtime}
                COMMAND ${generator} -r halide_runtime_${device} -e object -o ${folder} target=${runtime_target_${device}}
                DEPENDS ${generator}
                COMMENT "Halide's runtime for ${device}"
                VERBATIM)
        endif()
        add_library(convtranspose_${device}_parts OBJECT ${kernel_table_${device}}
                    ${CMAKE_CURRENT_SOURCE_DIR}/gpu/${device}_backend.cpp)
        _convtranspose_own(convtranspose_${device}_parts)
        # Nothing in it may be shared with other objects, what sanitizers add included. Halide calls some of it back. It is linked
        # with Halide's objects, and its symbols are made local, before others optimise as they link.
        target_compile_options(convtranspose_${device}_parts PRIVATE -fno-exceptions -fno-rtti -fno-sanitize=all
                               -fno-lto -fvisibility=default)
        set(linked ${folder}/${device}_with_halide.o)
        set(sealed ${folder}/${device}.o)
        set(objects ${kernel_objects_${device}})
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
