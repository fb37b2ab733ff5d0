# Fuzzing as tests: the project beside this file, built by clang, then each of its targets for five seconds. scripts/fuzz.sh runs
# them for longer. Where there is no clang with libFuzzer, one test says so and counts as skipped.
find_program(CONVTRANSPOSE_FUZZ_CXX NAMES clang++ clang++-14 DOC "clang, for libFuzzer; optional")
set(fuzz_dir ${PROJECT_BINARY_DIR}/fuzz)
file(MAKE_DIRECTORY ${fuzz_dir}/artifacts)
set(fuzzes FALSE)
if(CONVTRANSPOSE_FUZZ_CXX)
    file(WRITE ${fuzz_dir}/empty.cpp
         "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char *, unsigned long) { return 0; }\n")
    execute_process(COMMAND ${CONVTRANSPOSE_FUZZ_CXX} -fsanitize=fuzzer,address,undefined ${fuzz_dir}/empty.cpp -o ${fuzz_dir}/empty
                    RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
    if(result EQUAL 0)
        set(fuzzes TRUE)
    endif()
endif()
if(NOT fuzzes)
    add_test(NAME fuzz.targets COMMAND ${CMAKE_COMMAND} -E echo "Skipped: there is no clang++ with libFuzzer and sanitizers")
    set_tests_properties(fuzz.targets PROPERTIES LABELS fuzz SKIP_REGULAR_EXPRESSION "^Skipped:")
    return()
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(includes_of_onnx)
foreach(target convtranspose_onnx convtranspose_onnx_proto)
    list(APPEND includes_of_onnx "$<JOIN:$<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>,|>")
endforeach()
list(JOIN includes_of_onnx "|" includes_of_onnx)
add_test(NAME fuzz.build
         COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${CMAKE_CURRENT_LIST_DIR} ${fuzz_dir}/build --build-noclean
                 --build-generator ${CMAKE_GENERATOR} --build-makeprogram ${CMAKE_MAKE_PROGRAM} --build-options
                 -DCMAKE_CXX_COMPILER=${CONVTRANSPOSE_FUZZ_CXX}
                 "-DCONVTRANSPOSE_ONNX_ARCHIVES=$<TARGET_FILE:convtranspose_onnx>|$<TARGET_FILE:convtranspose_onnx_proto>"
                 "-DCONVTRANSPOSE_ONNX_INCLUDES=${includes_of_onnx}"
                 ${runtime_and_kernels})
add_test(NAME fuzz.corpus
         COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/make_corpus.py ${fuzz_dir}/corpus ${PROJECT_VERSION} ${version})
set_tests_properties(fuzz.build fuzz.corpus PROPERTIES LABELS fuzz TIMEOUT 1200 FIXTURES_SETUP fuzz_targets)
foreach(name input_shape interface line onnx tensor tuning)
    # Findings are kept in artifacts/; running the target with such a file repeats one.
    add_test(NAME fuzz.${name}
             COMMAND ${fuzz_dir}/build/fuzz_${name} -seed=1 -max_total_time=5 -timeout=20 -rss_limit_mb=2048 -max_len=1000
                     -print_final_stats=1 -artifact_prefix=${fuzz_dir}/artifacts/${name}- ${fuzz_dir}/corpus/${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120 FIXTURES_REQUIRED fuzz_targets
                         ENVIRONMENT UBSAN_OPTIONS=print_stacktrace=1)
endforeach()
