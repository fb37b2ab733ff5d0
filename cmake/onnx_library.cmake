# Targets for what the command line takes from ONNX itself, whose pinned wheel holds protobuf schemas and C++ sources:
#
#     convtranspose_onnx_proto   the messages
#     convtranspose_onnx         shape inference and inlining of functions

# The interpreter is asked where the wheel lies, without importing it.
if(NOT CONVTRANSPOSE_ONNX_PROTO_DIR)
    find_package(Python3 COMPONENTS Interpreter)
    if(Python3_Interpreter_FOUND)
        set(find_onnx [[
import importlib.util
spec = importlib.util.find_spec("onnx")
print(spec.submodule_search_locations[0] if spec else "", end="")
]])
        execute_process(COMMAND ${Python3_EXECUTABLE} -c ${find_onnx} OUTPUT_VARIABLE onnx_package_dir ERROR_QUIET)
    endif()
endif()
set(CONVTRANSPOSE_ONNX_PROTO_DIR "${onnx_package_dir}" CACHE PATH
    "Folder named onnx that holds onnx-ml.proto and the C++ sources (the onnx wheel's)")
foreach(needed onnx-ml.proto shape_inference/implementation.cc)
    if(NOT EXISTS ${CONVTRANSPOSE_ONNX_PROTO_DIR}/${needed})
        message(FATAL_ERROR "There is no ${needed} in CONVTRANSPOSE_ONNX_PROTO_DIR='${CONVTRANSPOSE_ONNX_PROTO_DIR}'. "
                            "Install the pinned onnx wheel for Python3_EXECUTABLE, or set the variable.")
    endif()
endforeach()
get_filename_component(onnx_parent ${CONVTRANSPOSE_ONNX_PROTO_DIR} DIRECTORY)

set(onnx_generated_dir ${CMAKE_CURRENT_BINARY_DIR}/onnx_generated)
file(MAKE_DIRECTORY ${onnx_generated_dir})
set(onnx_protos)
set(onnx_messages)
foreach(proto onnx-ml onnx-data onnx-operators-ml)
    list(APPEND onnx_protos ${CONVTRANSPOSE_ONNX_PROTO_DIR}/${proto}.proto)
    list(APPEND onnx_messages ${onnx_generated_dir}/onnx/${proto}.pb.cc ${onnx_generated_dir}/onnx/${proto}.pb.h)
endforeach()
add_custom_command(
    OUTPUT ${onnx_messages}
    COMMAND protobuf::protoc --cpp_out=${onnx_generated_dir} --proto_path=${onnx_parent} ${onnx_protos}
    DEPENDS ${onnx_protos}
    COMMENT "Generating C++ from ONNX's protobuf schemas"
    VERBATIM)
add_library(convtranspose_onnx_proto STATIC ${onnx_messages})
target_include_directories(convtranspose_onnx_proto SYSTEM PUBLIC ${onnx_generated_dir} ${onnx_generated_dir}/onnx)
target_link_libraries(convtranspose_onnx_proto PUBLIC protobuf::libprotobuf)

# Not the checker's and converter's Python sides. Each file includes all of the messages, so they are compiled in a few groups;
# schema.cc and tensor_proto_util.cc specialise templates that the others use, hence their places.
file(GLOB onnx_schemas ${CONVTRANSPOSE_ONNX_PROTO_DIR}/defs/*.cc ${CONVTRANSPOSE_ONNX_PROTO_DIR}/defs/*/*.cc)
set(onnx_old_schemas ${onnx_schemas})
list(FILTER onnx_old_schemas INCLUDE REGEX "/old\\.cc$")
list(FILTER onnx_schemas EXCLUDE REGEX "/(old|schema|tensor_proto_util)\\.cc$")
set(onnx_inference)
foreach(source checker common/assertions common/model_helpers common/status shape_inference/implementation defs/schema)
    list(APPEND onnx_inference ${CONVTRANSPOSE_ONNX_PROTO_DIR}/${source}.cc)
endforeach()
set(onnx_inlining)
foreach(source inliner/inliner version_converter/convert version_converter/helper common/ir_pb_converter common/interned_strings)
    list(APPEND onnx_inlining ${CONVTRANSPOSE_ONNX_PROTO_DIR}/${source}.cc)
endforeach()
foreach(group schemas old_schemas inference inlining)
    set_source_files_properties(${onnx_${group}} PROPERTIES UNITY_GROUP ${group})
endforeach()
add_library(convtranspose_onnx STATIC ${onnx_schemas} ${onnx_old_schemas} ${onnx_inference} ${onnx_inlining}
            ${CONVTRANSPOSE_ONNX_PROTO_DIR}/defs/tensor_proto_util.cc)
set_target_properties(convtranspose_onnx PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
target_compile_features(convtranspose_onnx PUBLIC cxx_std_17)
target_compile_definitions(convtranspose_onnx PUBLIC ONNX_ML=1 ONNX_NAMESPACE=onnx)
# It is run once for a model, and its warnings are not ours.
target_compile_options(convtranspose_onnx PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-O0;-w>)
target_include_directories(convtranspose_onnx SYSTEM PUBLIC ${onnx_parent})
target_link_libraries(convtranspose_onnx PUBLIC convtranspose_onnx_proto)
