# The project beside this file as tests: built, then run.
set(tsan_dir ${PROJECT_BINARY_DIR}/tsan)
add_test(NAME tsan.build
         COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${CMAKE_CURRENT_LIST_DIR} ${tsan_dir} --build-noclean
                 --build-generator ${CMAKE_GENERATOR} --build-makeprogram ${CMAKE_MAKE_PROGRAM} --build-options
                 -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} ${runtime_and_kernels})
add_test(NAME tsan.Concurrency COMMAND ${tsan_dir}/concurrency_test)
set_tests_properties(tsan.build PROPERTIES LABELS tsan TIMEOUT 1200 FIXTURES_SETUP tsan_program)
set_tests_properties(tsan.Concurrency PROPERTIES LABELS tsan TIMEOUT 600 FIXTURES_REQUIRED tsan_program
                     ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1 second_deadlock_stack=1")
