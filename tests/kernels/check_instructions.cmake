# Fails if a kernel holds an instruction that its ISA does not promise, or if none holds the instruction that an ISA is there
# for, a dot product or a multiply-add of f16. What is looked for is what the compiler could take from the CPU that it is told:
#   avx512_vnni   Zen 4: SSE4A, AVX512-BF16, AVX512-FP16, AVX-VNNI (the VEX forms), GFNI, AMX
#   amx           Sapphire Rapids: AVX512-FP16, AVX-VNNI, GFNI
#   neon          f16 arithmetic, which kernels of f16 are compiled with for its conversions; dot products
#   neon32        what came after the first NEON: fused multiply-adds, f16, division of integers
#   neon_dotprod  the same f16 arithmetic;  neon_fp16  dot products
# And fails if the code that LLVM was given for neon32 loads or stores several vectors of 64-bit elements in turns: there are no
# such instructions, and LLVM makes something else of them without a word.
string(CONCAT half_arithmetic
    "[ \t]f(mov|cmp|ccmp|add|sub|mul|nmul|madd|msub|mla|mls|div|neg|abs|max|min|maxnm|minnm|sqrt|csel|rint[a-z0-9]*|cm[a-z]+)"
    "[ \t][^\n]*(h[0-9]+|v[0-9]+[.][48]h)")
string(CONCAT forbidden_avx512_vnni
    "[ \t](insertq|extrq|movntss|movntsd|vdpbf16ps|vcvtne[a-z0-9]*bf16|vmovw|v[a-z0-9]*ph|vgf2p8[a-z]*|"
    "t[a-z]*tile[a-z]*|tdp[a-z]*)[ \t]|vex} vpdp")
set(forbidden_amx "[ \t](insertq|extrq|movntss|movntsd|vmovw|v[a-z0-9]*ph|vgf2p8[a-z]*)[ \t]|vex} vpdp")
set(forbidden_neon "${half_arithmetic}|[ \t]([us]dot|usdot|[us]mmla|bf[a-z]+)[ \t][^\n]*v[0-9]")
set(forbidden_neon32 "[ \t](vfn?m[as]|vcvt[bt]|[su]div)[. \t]|[ \t]v[a-z]+[.][a-z]?f16|[ \t]v[us]dot")
set(forbidden_neon_dotprod "${half_arithmetic}")
set(forbidden_neon_fp16 "[ \t]([us]dot|usdot|[us]mmla|bf[a-z]+|fmlal2?)[ \t][^\n]*v[0-9]")
set(purpose_of_amx "[ \t]tdp[a-z0-9]*[ \t]")
set(purpose_of_avx512_vnni "[ \t]vpdpbusd[ \t]")
set(purpose_of_neon_dotprod "[ \t]sdot[ \t]")
set(purpose_of_neon_fp16 "[ \t]fmla[ \t]+v[0-9]+[.]8h")

file(STRINGS ${LIST} objects)
set(checked 0)
set(given 0)
foreach(isa amx avx512_vnni neon neon_fp16 neon_dotprod)
    set(users_of_${isa} 0)
endforeach()
foreach(object IN LISTS objects)
    get_filename_component(folder ${object} DIRECTORY)
    get_filename_component(isa ${folder} NAME)
    if(NOT DEFINED forbidden_${isa})
        continue()
    endif()
    execute_process(COMMAND ${OBJDUMP} -d --no-show-raw-insn ${object} OUTPUT_VARIABLE code RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "${OBJDUMP} cannot read ${object}")
    endif()
    math(EXPR checked "${checked} + 1")
    if(code MATCHES "${forbidden_${isa}}")
        message(SEND_ERROR "${object}: ${CMAKE_MATCH_0}")
    endif()
    if(DEFINED purpose_of_${isa} AND code MATCHES "${purpose_of_${isa}}")
        math(EXPR users_of_${isa} "${users_of_${isa}} + 1")
    endif()
    set(seen_${isa} TRUE)
    if(isa STREQUAL neon32)
        string(REGEX REPLACE "[.]o(bj)?$" ".ll" code ${object})
        if(EXISTS ${code})
            math(EXPR given "${given} + 1")
            file(STRINGS ${code} wrong REGEX "call.*llvm[.]arm[.]neon[.]v(ld|st)[234][a-z0-9.]*v[0-9]+[fi]64" LIMIT_COUNT 1)
            if(wrong)
                message(SEND_ERROR "${object} was compiled from ${wrong}")
            endif()
        endif()
    endif()
endforeach()
if(checked EQUAL 0)
    message(FATAL_ERROR "${LIST} lists no kernel that there is a rule for")
endif()
foreach(isa amx avx512_vnni neon_fp16 neon_dotprod)
    if(seen_${isa} AND users_of_${isa} EQUAL 0)
        message(SEND_ERROR "no kernel of ${isa} holds the instruction that the ISA is there for")
    elseif(seen_${isa})
        message("${isa}: ${users_of_${isa}} kernels with what it is there for")
    endif()
endforeach()
if(seen_neon32 AND given EQUAL 0)
    message(SEND_ERROR "there is no code that LLVM was given for neon32")
endif()
message("${checked} kernels checked")
