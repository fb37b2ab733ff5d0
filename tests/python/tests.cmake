# Tests of the Python package in the build folder, and of what is installed of it.
set(settings "PYTHONPATH=${PROJECT_BINARY_DIR}/bindings/python;BUILD_DIR=${PROJECT_BINARY_DIR}"
                "CMAKE_COMMAND=${CMAKE_COMMAND};CC=${CMAKE_C_COMPILER}")
foreach(suite arrays functions onnx_backend package plan torch torch_module torch_page types)
    add_test(NAME python.${suite}
             COMMAND ${Python_EXECUTABLE} -B -W error::ResourceWarning -m unittest test_${suite}
             WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
    set_tests_properties(python.${suite} PROPERTIES LABELS python TIMEOUT 300 ENVIRONMENT "${settings}"
                         ENVIRONMENT_MODIFICATION "${loads_sanitizer}")
endforeach()
