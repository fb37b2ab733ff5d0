# Tests of the Python package in the build folder.
foreach(suite arrays functions onnx_backend plan types)
    add_test(NAME python.${suite}
             COMMAND ${Python_EXECUTABLE} -B -W error::ResourceWarning -m unittest test_${suite}
             WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
    set_tests_properties(python.${suite} PROPERTIES LABELS python TIMEOUT 300
                         ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/bindings/python;PYTHONDONTWRITEBYTECODE=1")
endforeach()
