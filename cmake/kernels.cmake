# Turns the table of variants.cmake into object files and a C++ table of them. One command and one object for each row and
# ISA: the dispatcher picks by CPU, so no wrapper is needed, and neither is a Halide runtime, as kernels allocate nothing,
# check nothing that the dispatcher has not checked, and call nothing.
include(variants)

set(halide_dtype_f16 float16)
set(halide_dtype_bf16 bfloat16)
set(halide_dtype_f32 float32)
set(halide_dtype_f64 float64)
set(enum_isa_avx512 kAvx512)
set(enum_isa_avx2 kAvx2)
set(enum_isa_x86_64 kX86_64)

# _kernel(name isa generator params...): one object file by one generator.
function(_convtranspose_kernel name isa generator)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/kernels/${isa}/${name}.o)
    add_custom_command(
        OUTPUT ${object}
        # Halide warns that f16 is emulated, which on x86 it always is: its words are kept for failures.
        COMMAND ${generator}_generator -g ${generator} -f convt_${name}_${isa} -n ${name} -e object
                -o ${CMAKE_CURRENT_BINARY_DIR}/kernels/${isa}
                target=${target_${isa}}-no_runtime-no_asserts-no_bounds_query ${ARGN}
                2> ${object}.log || ${CMAKE_COMMAND} -D LOG=${object}.log -P ${PROJECT_SOURCE_DIR}/cmake/kernel_failed.cmake
        DEPENDS ${generator}_generator
        COMMENT "Kernel ${name} for ${isa}"
        VERBATIM)
    set_property(DIRECTORY APPEND PROPERTY CONVTRANSPOSE_OBJECTS ${object})
endfunction()

function(convtranspose_pads)
    cmake_parse_arguments(arg "" "" "ISAS;DTYPES;ORDERS" ${ARGN})
    set(order_planar kPlanar)
    set(order_channels kChannels)
    set(order_transposed kTransposed)
    foreach(isa IN LISTS arg_ISAS)
        foreach(dtype IN LISTS arg_DTYPES)
            string(TOUPPER ${dtype} upper)
            foreach(order IN LISTS arg_ORDERS)
                _convtranspose_kernel(pad_${dtype}_${order} ${isa} pad_input x_type=${halide_dtype_${dtype}} order=${order})
                set(function convt_pad_${dtype}_${order}_${isa})
                set_property(DIRECTORY APPEND_STRING PROPERTY CONVTRANSPOSE_DECLARATIONS
                             "int ${function}(halide_buffer_t *, halide_buffer_t *);\n")
                set_property(DIRECTORY APPEND_STRING PROPERTY CONVTRANSPOSE_PADS
                             "    {Isa::${enum_isa_${isa}}, PadOrder::${order_${order}}, CONVT_${upper}, ${function}},\n")
            endforeach()
        endforeach()
    endforeach()
endfunction()

function(convtranspose_variants)
    cmake_parse_arguments(arg "" "FAMILY" "ISAS;DTYPES;STORES;STRIDES;TILES" ${ARGN})
    string(SUBSTRING ${arg_FAMILY} 0 1 first)
    string(SUBSTRING ${arg_FAMILY} 1 -1 others)
    string(TOUPPER ${first} first)
    set(enum_family k${first}${others})
    set(enum_store_channels kChannels)
    set(enum_store_planar kPlanar)
    foreach(isa IN LISTS arg_ISAS)
        foreach(dtype IN LISTS arg_DTYPES)
            set(lanes ${lanes_${isa}})
            if(dtype STREQUAL f64)
                math(EXPR lanes "${lanes} / 2")
            endif()
            string(TOUPPER ${dtype} upper)
            foreach(store IN LISTS arg_STORES)
                foreach(strides IN LISTS arg_STRIDES)
                    string(REPLACE x ";" stride_list ${strides})
                    list(APPEND stride_list 0)
                    list(GET stride_list 0 stride_w)
                    list(GET stride_list 1 stride_h)
                    foreach(tile IN LISTS arg_TILES)
                        string(REPLACE x ";" tile_list ${tile})
                        list(APPEND tile_list 1)
                        list(GET tile_list 0 tile_oc)
                        list(GET tile_list 1 tile_q)
                        list(GET tile_list 2 tile_qh)
                        if(arg_FAMILY STREQUAL channels)
                            math(EXPR tile_oc "${tile_oc} * ${lanes}")
                        elseif(arg_FAMILY MATCHES "wide|few" OR (arg_FAMILY STREQUAL depthwise AND store STREQUAL planar))
                            math(EXPR tile_q "${tile_q} * ${lanes}")
                        endif()
                        if(arg_FAMILY STREQUAL reference)
                            set(name reference_${dtype})
                        elseif(strides STREQUAL 0)
                            set(name ${arg_FAMILY}_${dtype}_${store}_${tile})
                        else()
                            set(name ${arg_FAMILY}_${dtype}_${store}_s${strides}_${tile})
                        endif()
                        set(x_type ${halide_dtype_${dtype}})
                        if(NOT arg_FAMILY STREQUAL reference AND NOT dtype STREQUAL f64)
                            set(x_type float32)
                        endif()
                        _convtranspose_kernel(${name} ${isa} ${arg_FAMILY} store=${store} x_type=${x_type}
                                              y_type=${halide_dtype_${dtype}} stride_w=${stride_w} stride_h=${stride_h}
                                              tile_oc=${tile_oc} tile_q=${tile_q} tile_qh=${tile_qh})
                        set(function convt_${name}_${isa})
                        set_property(DIRECTORY APPEND_STRING PROPERTY CONVTRANSPOSE_DECLARATIONS
                                     "ConvSignature ${function};\n")
                        string(CONCAT row "    {\"${name}\", Isa::${enum_isa_${isa}}, Family::${enum_family}, "
                               "Store::${enum_store_${store}}, CONVT_${upper}, ${stride_w}, ${stride_h}, ${tile_oc}, "
                               "${tile_q}, ${tile_qh}, ${lanes}, ${function}},\n")
                        set_property(DIRECTORY APPEND_STRING PROPERTY CONVTRANSPOSE_ROWS "${row}")
                    endforeach()
                endforeach()
            endforeach()
        endforeach()
    endforeach()
endfunction()

# convtranspose_kernels(objects table): builds the table; sets the object files, and the C++ source that lists them.
function(convtranspose_kernels objects_variable table_variable)
    foreach(isa IN LISTS isas)
        file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/kernels/${isa})
    endforeach()
    convtranspose_table()
    get_property(objects DIRECTORY PROPERTY CONVTRANSPOSE_OBJECTS)
    get_property(declarations DIRECTORY PROPERTY CONVTRANSPOSE_DECLARATIONS)
    get_property(rows DIRECTORY PROPERTY CONVTRANSPOSE_ROWS)
    get_property(pads DIRECTORY PROPERTY CONVTRANSPOSE_PADS)
    set(table ${CMAKE_CURRENT_BINARY_DIR}/variant_table.cpp)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/variant_table.cpp.in ${table} @ONLY)
    set(${objects_variable} ${objects} PARENT_SCOPE)
    set(${table_variable} ${table} PARENT_SCOPE)
endfunction()
