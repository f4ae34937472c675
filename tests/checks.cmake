# SPDX-License-Identifier: Apache-2.0
# The checks that are not unit tests: every public header on its own, every example and wrong program with each compiler, the
# library's own rules, and consumers built from clean folders.

# ---- fuzz targets: clang's libFuzzer; each is a short run in the suite, 60 seconds with SKEIN_EXHAUSTIVE. The gate, whose compiler has no
# libFuzzer, runs them on changes of their seeds and of what fuzz/corpus keeps (support/fuzz_replay.cpp)
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*.cpp)
list(APPEND registered ${fuzz_sources})
set(fuzz_here "")
foreach(source IN LISTS fuzz_sources)
  skein_included_components(components absent "${source}")
  if(absent)
    message(STATUS "${source}: left out, it needs ${absent}")
  else()
    list(APPEND fuzz_here "${source}")
  endif()
endforeach()
if(SKEIN_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SKEIN_FUZZ needs -DCMAKE_CXX_COMPILER=clang++: gcc has no libFuzzer")
  endif()
  set(seconds 2)
  if(SKEIN_EXHAUSTIVE)
    set(seconds 60)
  endif()
  foreach(source IN LISTS fuzz_here)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(fuzz_${name} "${source}")
    skein_private(fuzz_${name})
    skein_link_what_it_includes(fuzz_${name} absent "${source}")
    target_include_directories(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_compile_definitions(fuzz_${name} PRIVATE SKEIN_FUZZ_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus")
    target_compile_options(fuzz_${name} PRIVATE -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer,address,undefined)
    set(folder "${PROJECT_BINARY_DIR}/run/fuzz.${name}")
    file(MAKE_DIRECTORY "${folder}/corpus")
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} corpus -max_total_time=${seconds} -rss_limit_mb=1024 -max_len=4096
             WORKING_DIRECTORY "${folder}")
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300 ENVIRONMENT "SKEIN_FUZZ_SEEDS=${folder}/corpus")
  endforeach()
endif()
if(NOT SKEIN_TESTS)
  return()
endif()
skein_join(joined fuzz 7 ${fuzz_here})
add_executable(fuzz_replay ${joined} support/fuzz_replay.cpp)
skein_private(fuzz_replay)
skein_test_options(fuzz_replay)
target_compile_definitions(fuzz_replay PRIVATE SKEIN_FUZZ_REPLAY SKEIN_FUZZ_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus")
target_include_directories(fuzz_replay PRIVATE "${PROJECT_SOURCE_DIR}/tests")
skein_link_what_it_includes(fuzz_replay absent ${fuzz_here})
add_test(NAME fuzz.replay COMMAND fuzz_replay --changes 2000)
set_tests_properties(fuzz.replay PROPERTIES LABELS "unit;fuzz" TIMEOUT 120)

# ---- flags of skein and of what it found, for compilers that are called directly
add_library(skein_flags OBJECT EXCLUDE_FROM_ALL support/main.cpp)
target_link_libraries(skein_flags PRIVATE skein::skein)
foreach(component mpi gloo xtensor lapack images hdf5)
  if(TARGET skein::${component})
    target_link_libraries(skein_flags PRIVATE skein::${component})
  endif()
endforeach()
set(flags_file "${PROJECT_BINARY_DIR}/flags.rsp")
set(folders "$<REMOVE_DUPLICATES:$<FILTER:$<TARGET_PROPERTY:skein_flags,INCLUDE_DIRECTORIES>,EXCLUDE,^(/usr/include)?$>>")
set(definitions "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:skein_flags,COMPILE_DEFINITIONS>>")
file(GENERATE OUTPUT "${flags_file}" CONTENT
     "-I$<JOIN:${folders},\n-I>\n$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},\n-D>\n>" TARGET skein_flags)

find_program(SKEIN_CHECK_GXX NAMES g++ g++-12 g++-13 g++-14)
find_program(SKEIN_CHECK_CLANGXX NAMES clang++ clang++-14 clang++-15 clang++-16 clang++-17 clang++-18)
find_program(SKEIN_CHECK_NVCC nvcc HINTS "${CUDAToolkit_BIN_DIR}")
set(native_GXX "")                                           # the tests themselves are g++'s programs for this machine
set(native_CLANGXX --native)
set(native_NVCC "")
set(name_of_GXX g++)
set(name_of_CLANGXX clang++)
set(name_of_NVCC nvcc)
set(compilers "")
foreach(compiler GXX CLANGXX NVCC)
  if(SKEIN_CHECK_${compiler} AND NOT (compiler STREQUAL "NVCC" AND NOT SKEIN_CUDA))
    list(APPEND compilers ${compiler})
  elseif(NOT compiler STREQUAL "NVCC")
    skein_report("checks with ${name_of_${compiler}}" FALSE "headers and wrong programs are not tried with it; apt install clang g++")
  endif()
endforeach()
# Where python3 is a script that looks for itself (pyenv), each of many hundred calls would take a tenth of a second more.
execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import sys; print(sys.executable)" OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
set(check "${python}" "${CMAKE_CURRENT_SOURCE_DIR}/support/compile.py" --flags "${flags_file}")

# ---- precompiled headers, for what many of these checks begin with. The long checks do without, and so find what forgets an include.
# skein_precompile(<name> <compiler> <options>...): makes one before the checks that call skein_use_precompiled(<test> <name>); the options that
# give it to the runner are in precompiled_<name>, empty where there is none.
function(skein_precompile name compiler)
  set(precompiled_${name} "" PARENT_SCOPE)
  if(SKEIN_EXHAUSTIVE OR NOT SKEIN_CHECK_${compiler})
    return()
  endif()
  set(ending pch)
  if(compiler STREQUAL "GXX")
    set(ending gch)
  endif()
  set(file "${PROJECT_BINARY_DIR}/precompiled/${name}.hpp.${ending}")
  add_test(NAME compile.precompiled.${name} COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} --precompile "${file}" ${ARGN})
  set_tests_properties(compile.precompiled.${name} PROPERTIES LABELS compile TIMEOUT 300 FIXTURES_SETUP skein_precompiled_${name})
  set(precompiled_${name} --precompiled "${file}" PARENT_SCOPE)
endfunction()
function(skein_use_precompiled test name)
  if(precompiled_${name})
    set_tests_properties("${test}" PROPERTIES FIXTURES_REQUIRED skein_precompiled_${name})
  endif()
endfunction()
set(form --compiled)                                         # of wrong programs: the sentences do not need the bodies
if(SKEIN_EXHAUSTIVE)
  set(form "")
endif()
skein_precompile(others CLANGXX --native)
skein_precompile(umbrella CLANGXX --native --with skein/skein.hpp)
skein_precompile(wrong_CLANGXX CLANGXX ${form} --with skein/skein.hpp)
skein_precompile(wrong_GXX GXX ${form} --with skein/nn/model.hpp skein/nn/linear.hpp skein/nn/flatten.hpp skein/nn/loss/mse.hpp
                 skein/optim/sgd.hpp skein/data/from_tensors.hpp)
set(precompiled_wrong_NVCC "")
set(precompiled_header_CLANGXX ${precompiled_others})

# ---- every header on its own. The gate gives the compilers a house at a time: g++ and clang++ see each header as if alone, several in a source
# where that is the same (support/chains.py), nvcc all in one. Each in a source of its own took clang++ and nvcc five minutes, and is part of scripts/test --all.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/include/skein/*.hpp")
set(GXX_houses "")
set(CLANGXX_houses "")
set(NVCC_houses "")
foreach(header IN LISTS headers)
  if((header MATCHES "comm/mpi/|skein/mpi.hpp" AND NOT SKEIN_HAS_mpi) OR (header MATCHES "gloo" AND NOT SKEIN_HAS_gloo) OR
     (header MATCHES "xtensor.hpp" AND NOT SKEIN_HAS_xtensor) OR (header MATCHES "tensor/format.hpp" AND NOT SKEIN_HAS_fmt)
     OR header MATCHES "/cuda/|/nccl/|skein/cuda.hpp|skein/nccl.hpp")
    continue()
  endif()
  foreach(compiler IN LISTS compilers)
    if(compiler STREQUAL "NVCC" AND header MATCHES "xtensor.hpp|gloo")
      continue()
    endif()
    # What stands on its own for clang++ and nvcc does for g++, which compiles it in the tests: two minutes, part of scripts/test --all.
    if(compiler STREQUAL "GXX" AND SKEIN_CHECK_CLANGXX AND NOT SKEIN_EXHAUSTIVE)
      continue()
    endif()
    if(header MATCHES "^skein/([a-z]+)/" AND NOT SKEIN_EXHAUSTIVE)
      list(APPEND ${compiler}_houses ${CMAKE_MATCH_1})
      list(APPEND ${compiler}_${CMAKE_MATCH_1} ${header})
      continue()
    endif()
    add_test(NAME "header.${name_of_${compiler}}.${header}"
             COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} ${native_${compiler}} ${precompiled_header_${compiler}} --header ${header})
    set_tests_properties("header.${name_of_${compiler}}.${header}" PROPERTIES LABELS "compile" TIMEOUT 300)
    if(compiler STREQUAL "CLANGXX")
      skein_use_precompiled("header.${name_of_${compiler}}.${header}" others)
    endif()
  endforeach()
endforeach()
foreach(compiler IN LISTS compilers)
  list(REMOVE_DUPLICATES ${compiler}_houses)
  foreach(house IN LISTS ${compiler}_houses)
    set(test "header.${name_of_${compiler}}.skein/${house}")
    add_test(NAME "${test}" COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} ${native_${compiler}} ${precompiled_header_${compiler}}
             --header ${${compiler}_${house}})
    set_tests_properties("${test}" PROPERTIES LABELS "compile" TIMEOUT 900)
    if(compiler STREQUAL "CLANGXX")
      skein_use_precompiled("${test}" others)
    endif()
  endforeach()
endforeach()

# ---- every header of the device on its own, by nvcc (its device side; what is beside the houses the whole way)
if(SKEIN_HAS_cuda AND SKEIN_CHECK_NVCC)
  add_library(skein_cuda_flags OBJECT EXCLUDE_FROM_ALL support/main.cpp)
  target_link_libraries(skein_cuda_flags PRIVATE skein::cuda)
  if(SKEIN_HAS_nccl)
    target_link_libraries(skein_cuda_flags PRIVATE skein::nccl)
  endif()
  set(cuda_flags_file "${PROJECT_BINARY_DIR}/flags_cuda.rsp")
  set(folders "$<REMOVE_DUPLICATES:$<FILTER:$<TARGET_PROPERTY:skein_cuda_flags,INCLUDE_DIRECTORIES>,EXCLUDE,^(/usr/include)?$>>")
  set(definitions "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:skein_cuda_flags,COMPILE_DEFINITIONS>>")
  set(cuda_folders "")
  file(GENERATE OUTPUT "${cuda_flags_file}" CONTENT
       "-I$<JOIN:${folders},\n-I>\n$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},\n-D>\n>" TARGET skein_cuda_flags)
  foreach(header IN LISTS headers)
    if(NOT header MATCHES "/cuda/|/nccl/|skein/cuda.hpp|skein/nccl.hpp")
      continue()
    endif()
    skein_cuda_absent(absent "${PROJECT_SOURCE_DIR}/include/${header}")
    if(absent)
      continue()
    endif()
    if(header MATCHES "^skein/(.+)/[^/]+$" AND NOT SKEIN_EXHAUSTIVE)
      list(APPEND cuda_folders ${CMAKE_MATCH_1})
      list(APPEND "nvcc_${CMAKE_MATCH_1}" ${header})
      continue()
    endif()
    add_test(NAME "header.nvcc.${header}"
             COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/support/compile.py" --flags "${cuda_flags_file}"
                     --compiler ${SKEIN_CHECK_NVCC} --header ${header})
    set_tests_properties("header.nvcc.${header}" PROPERTIES LABELS "compile;cuda" TIMEOUT 300)
  endforeach()
  list(REMOVE_DUPLICATES cuda_folders)
  foreach(folder IN LISTS cuda_folders)
    add_test(NAME "header.nvcc.skein/${folder}"
             COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/support/compile.py" --flags "${cuda_flags_file}"
                     --compiler ${SKEIN_CHECK_NVCC} --header ${nvcc_${folder}})
    set_tests_properties("header.nvcc.skein/${folder}" PROPERTIES LABELS "compile;cuda" TIMEOUT 900)
  endforeach()
endif()

# ---- every example, with the compiler that does not build it
file(GLOB examples CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
     "${PROJECT_SOURCE_DIR}/examples/*.cpp" "${PROJECT_SOURCE_DIR}/examples/experiments/*.cpp")
set(other CLANGXX)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(other GXX)
endif()
set(precompiled_of_source_CLANGXX ${precompiled_umbrella})
# skein_check_syntax(<test> <compiler> <source>)
function(skein_check_syntax test compiler source)
  add_test(NAME "${test}" COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} --native ${precompiled_of_source_${compiler}}
           --source "${PROJECT_SOURCE_DIR}/${source}")
  set_tests_properties("${test}" PROPERTIES LABELS compile TIMEOUT 300)
  if(compiler STREQUAL "CLANGXX")
    skein_use_precompiled("${test}" umbrella)
  endif()
endfunction()
if(SKEIN_HAS_mpi AND SKEIN_CHECK_${other})
  list(APPEND examples tests/nn/program_test.cpp)              # the fingerprint that ranks of two compilers compare
  foreach(example IN LISTS examples)
    skein_check_syntax("syntax.${name_of_${other}}.${example}" ${other} ${example})
  endforeach()
endif()

# ---- every bench, which the gate does not build; clang++ needs a quarter of g++'s time, which builds them in scripts/test --all
set(quicker GXX)
if(SKEIN_CHECK_CLANGXX)
  set(quicker CLANGXX)
endif()
if(NOT SKEIN_BENCH AND SKEIN_HAS_mpi AND SKEIN_CHECK_${quicker})
  file(GLOB benches CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/bench/*.cpp")
  foreach(bench IN LISTS benches)
    skein_check_syntax("syntax.${bench}" ${quicker} ${bench})
  endforeach()
endif()

# ---- macros of other headers, without a precompiled header, behind which they would come
if(SKEIN_CHECK_${quicker})
  add_test(NAME house.macros COMMAND ${check} --compiler ${SKEIN_CHECK_${quicker}} --source "${CMAKE_CURRENT_SOURCE_DIR}/house/macros/macros.cpp")
  set_tests_properties(house.macros PROPERTIES LABELS "house;compile" TIMEOUT 300)
endif()

# ---- wrong programs: one error, the sentence in it, and a twin that compiles (in the gate all twins together)
set(twin --without-twin)
if(SKEIN_EXHAUSTIVE)
  set(twin "")
endif()
file(GLOB cases CONFIGURE_DEPENDS compile_fail/*.cpp)
list(APPEND registered ${cases})
foreach(case IN LISTS cases)
  get_filename_component(name "${case}" NAME_WE)
  foreach(compiler IN LISTS compilers)
    if(compiler STREQUAL "NVCC" AND NOT SKEIN_EXHAUSTIVE)            # six minutes: part of scripts/test --all
      continue()
    endif()
    add_test(NAME compile_fail.${name_of_${compiler}}.${name}
             COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} ${form} ${precompiled_wrong_${compiler}} --wrong "${case}" ${twin})
    set_tests_properties(compile_fail.${name_of_${compiler}}.${name} PROPERTIES LABELS "compile" TIMEOUT 300)
    skein_use_precompiled(compile_fail.${name_of_${compiler}}.${name} wrong_${compiler})
  endforeach()
endforeach()
foreach(compiler IN LISTS compilers)
  if(NOT (SKEIN_EXHAUSTIVE OR compiler STREQUAL "NVCC"))
    add_test(NAME compile_fail.twins.${name_of_${compiler}} COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} --twins ${cases})
    set_tests_properties(compile_fail.twins.${name_of_${compiler}} PROPERTIES LABELS "compile" TIMEOUT 600)
  endif()
  add_test(NAME compile_fail.runner.${name_of_${compiler}} COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} --self-test)
  set_tests_properties(compile_fail.runner.${name_of_${compiler}} PROPERTIES LABELS "compile" TIMEOUT 300)
endforeach()

# ---- the house's own rules
list(JOIN registered "\n" registered_lines)
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/registered_tests.txt" CONTENT "${registered_lines}\n")
foreach(rule include_rules sources_registered licence_lines doc_snippets doc_links option_tables laws header_tests formatted switches reference program_lines umbrella_names script_help script_paths script_words setup_script vendor_script bench_script data_folder)
  add_test(NAME house.${rule} COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/house/${rule}.py"
           "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/registered_tests.txt")
  add_test(NAME house.${rule}.self_test COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/house/${rule}.py" --self-test)
  set_tests_properties(house.${rule} house.${rule}.self_test PROPERTIES LABELS house TIMEOUT 120 SKIP_RETURN_CODE 77)
endforeach()

if(TARGET test_cuda_kernels)
  add_test(NAME house.kernels COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/house/kernels.py" "${PROJECT_SOURCE_DIR}" $<TARGET_FILE:test_cuda_kernels>)
  add_test(NAME house.traps COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/house/traps.py" $<TARGET_FILE:test_cuda_kernels>)
  set_tests_properties(house.kernels house.traps PROPERTIES LABELS "house;cuda" TIMEOUT 60)
endif()
foreach(tool house/kernels house/traps house/doc_outputs support/unity support/expects)
  get_filename_component(name ${tool} NAME)
  add_test(NAME house.${name}.self_test COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/${tool}.py" --self-test)
  set_tests_properties(house.${name}.self_test PROPERTIES LABELS house TIMEOUT 60)
endforeach()
add_test(NAME house.discover.self_test COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/support/discover.py" --self-test)
add_test(NAME house.bench_report.self_test COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/bench/report.py" --self-test)
add_test(NAME house.cuda_script COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/house/cuda_script.py" "${PROJECT_SOURCE_DIR}")
set_tests_properties(house.discover.self_test house.bench_report.self_test house.cuda_script PROPERTIES LABELS house TIMEOUT 60)
if(SKEIN_CHECK_GXX AND NOT SKEIN_SANITIZE)                    # counted, so the same on every machine
  add_test(NAME bench.overhead COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/bench/overhead.py" --compiler ${SKEIN_CHECK_GXX} --check)
  set_tests_properties(bench.overhead PROPERTIES LABELS house TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()

# ---- programs that have to print a sentence and to end as it says (support/expects.py)
# skein_add_expecting(<test> <labels> <target> <expression> <command>...): <expression> may be "--fails;..."
set(expects "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/support/expects.py")
function(skein_add_expecting test labels target expression)
  add_test(NAME ${test} COMMAND ${expects} ${expression} $<TARGET_FILE:${target}> -- ${ARGN})
  set_tests_properties(${test} PROPERTIES LABELS "${labels}" TIMEOUT 60)
endfunction()

# ---- what a debug build looks at
if(NOT SKEIN_SANITIZE)
  add_executable(test_checked house/checked/checked.cpp)
  skein_private(test_checked)
  target_compile_options(test_checked PRIVATE -O0 -UNDEBUG)
  target_link_libraries(test_checked PRIVATE ${SKEIN_FORM})
  set(stale "weights changed while nobody had a lease")
  foreach(case "stale;${stale}" "stale_of_two;${stale}" "too_large;batch has 8 samples, and .capacity is 7" "index;index 3 of axis 1 is not within"
          "span;index 99999 of axis 0 is not within" "none;nothing was found"
          "output;OnlyAdds: forward does not write its output .value 0 of sample"
          "half_of_the_output;ByPointers: forward does not write its output .value 3 of sample"
          "input_gradient;NoInputGradient: backward does not write the gradient of its input"
          "parameter_gradient;NoParameterGradient: backward adds nothing to the gradient of its parameter 'scale'"
          "all_written;nothing was found")
    list(POP_FRONT case name sentence)
    skein_add_expecting(house.checked.${name} house test_checked "${sentence}" $<TARGET_FILE:test_checked> ${name})
  endforeach()
endif()

# ---- a program's main: a wrong flag, and an exception that passes the world, are one sentence
if(SKEIN_HAS_mpi AND SKEIN_EXAMPLES)
  foreach(case "flag;--epoch;3;there is no flag --epoch: is --epochs meant" "exception;--data;/nowhere;rank 0: /nowhere")
    list(POP_FRONT case name flag value sentence)
    skein_add_expecting(house.main.${name} "house;mpi" example_03_mnist_data_parallel "${sentence}"
                        $<TARGET_FILE:example_03_mnist_data_parallel> ${flag} ${value})
  endforeach()
endif()

# ---- an exception that passes the world: the message is its own where main's body runs in sk::run
if(SKEIN_HAS_mpi)
  add_executable(test_leaves_world house/main/leaves_world.cpp)
  skein_private(test_leaves_world)
  skein_test_options(test_leaves_world)
  target_link_libraries(test_leaves_world PRIVATE skein::mpi)
  skein_mpirun(start 2)
  foreach(case "by_run;rank 1: the sensor does not answer"
               "within_run;rank 1: an exception left the scope of the world's communicator, and the program caught it"
               "by_hand;the last error that skein raised: an error of before, that was caught. with main's body in sk::run")
    list(POP_FRONT case name sentence)
    skein_add_expecting(house.leaves_world.${name} "house;mpi" test_leaves_world "${sentence}" ${start} $<TARGET_FILE:test_leaves_world> ${name})
    set_tests_properties(house.leaves_world.${name} PROPERTIES PROCESSORS 2)
  endforeach()
endif()

# ---- the harness for ranks: a failure on one rank fails the run, a lost rank is named
if(SKEIN_HAS_mpi)
  add_executable(test_harness house/harness/harness_cases.cpp)
  skein_private(test_harness)
  skein_test_options(test_harness)
  target_link_libraries(test_harness PRIVATE skein_test_mpi_main skein_test_mpi_runner)
  target_precompile_headers(test_harness REUSE_FROM skein_test_mpi_main)
  if(SKEIN_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(test_harness PRIVATE -fpch-preprocess)
  endif()
  skein_mpirun(start 3)
  foreach(case "passes;All tests passed" "fails_on_rank_2;--fails;---- rank 2.*1 failed"
               "hangs_on_rank_1;--fails;watchdog: rank 1 is still in \"hangs_on_rank_1\" after 3 seconds")
    list(POP_FRONT case name)
    skein_add_expecting(house.harness.${name} "house;mpi" test_harness "${case}" ${start} $<TARGET_FILE:test_harness> ${name})
    set_tests_properties(house.harness.${name} PROPERTIES PROCESSORS 2)
  endforeach()
  set_tests_properties(house.harness.hangs_on_rank_1 PROPERTIES ENVIRONMENT SKEIN_TEST_DEADLINE=3)
endif()

# ---- a rank that is killed or stopped, over each transport, with several threads a rank
if(SKEIN_HAS_mpi AND NOT SKEIN_SANITIZE)
  add_executable(test_dead_rank house/dead_rank/dead_rank.cpp)
  skein_private(test_dead_rank)
  skein_test_options(test_dead_rank)
  target_link_libraries(test_dead_rank PRIVATE skein::mpi)
  add_test(NAME house.dead_rank COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/house/dead_rank/check.py" $<TARGET_FILE:test_dead_rank>
           "${SKEIN_MPIRUN}" --allow-run-as-root --oversubscribe --bind-to none)
  set_tests_properties(house.dead_rank PROPERTIES LABELS "house;mpi" TIMEOUT 400 SKIP_RETURN_CODE 77 PROCESSORS 2)
endif()

# ---- the scripts of examples/slurm, given to a Slurm of the test's own; mostly it waits
if(SKEIN_HAS_mpi AND SKEIN_EXAMPLES AND NOT SKEIN_SANITIZE)
  add_test(NAME slurm.scripts COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/slurm/check.py" "${PROJECT_SOURCE_DIR}"
           $<TARGET_FILE:example_11_mnist_over_mpi> $<TARGET_FILE:cookbook_programs> requeue)
  set_tests_properties(slurm.scripts PROPERTIES LABELS "example;mpi" TIMEOUT 180 SKIP_RETURN_CODE 77 ENVIRONMENT "SKEIN_DATA=${SKEIN_DATA_DIR}")
endif()

# ---- the scripts of examples/elastic, each with its launcher: a rank is killed, and the job goes on; mostly they wait
if(TARGET example_train AND NOT SKEIN_SANITIZE)
  foreach(launcher mpirun torchrun slurm)
    add_test(NAME elastic.${launcher} COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/elastic/check.py" "${PROJECT_SOURCE_DIR}"
             $<TARGET_FILE:example_train> ${launcher})
    set_tests_properties(elastic.${launcher} PROPERTIES LABELS "example;mpi" TIMEOUT 120 SKIP_RETURN_CODE 77 PROCESSORS 2)
  endforeach()
endif()

# ---- a machine without packages
if(NOT SKEIN_SANITIZE)
  add_test(NAME consumer.vendor COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/consumer/vendor.sh" "${PROJECT_SOURCE_DIR}"
           "${PROJECT_BINARY_DIR}/run/consumer.vendor")
  set_tests_properties(consumer.vendor PROPERTIES LABELS consumer TIMEOUT 600 SKIP_RETURN_CODE 77 ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}")
endif()

# ---- CUDA's libraries from Python packages
add_test(NAME consumer.pip_cuda COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/consumer/pip_cuda.sh" "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/run/consumer.pip_cuda")
set_tests_properties(consumer.pip_cuda PROPERTIES LABELS consumer TIMEOUT 60)

# ---- a library that was built otherwise than the program: the linker says so
if(NOT SKEIN_SANITIZE)
  add_test(NAME consumer.other_library COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/consumer/other_library.sh" "${PROJECT_SOURCE_DIR}"
           "${PROJECT_BINARY_DIR}/run/consumer.other_library")
  set_tests_properties(consumer.other_library PROPERTIES LABELS consumer TIMEOUT 300 ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}")
endif()

# ---- options that the library cannot be compiled with
add_test(NAME consumer.options COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/consumer/options.sh" "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/run/consumer.options")
set_tests_properties(consumer.options PROPERTIES LABELS consumer TIMEOUT 60 ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}")

# ---- what configuring alone shows
add_test(NAME consumer.configure COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/consumer/configure.sh" "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/run/consumer.configure")
set_tests_properties(consumer.configure PROPERTIES LABELS consumer TIMEOUT 600 ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}")

# ---- a project that brings its own fmt, xsimd or nlohmann-json
add_test(NAME consumer.own_dependencies COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/consumer/own_dependencies.sh" "${PROJECT_SOURCE_DIR}"
         "${PROJECT_BINARY_DIR}/run/consumer.own_dependencies")
set_tests_properties(consumer.own_dependencies PROPERTIES LABELS consumer TIMEOUT 120 ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}")

# ---- consumers, each from a clean folder; Conan takes the system's packages at the versions that were found here
if(NOT SKEIN_SANITIZE)
  get_property(packages GLOBAL PROPERTY SKEIN_FOUND)
  list(JOIN packages " " packages)
  foreach(consumer add_subdirectory bare cuda fetch_content fetch_content_compiled find_package find_package_compiled conan conan_compiled)
    add_test(NAME consumer.${consumer} COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/consumer/run.sh" ${consumer}
             "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/run/consumer.${consumer}")
    set_tests_properties(consumer.${consumer} PROPERTIES LABELS consumer TIMEOUT 900 SKIP_RETURN_CODE 77
      ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER};SKEIN_CHECK_MPI=${SKEIN_HAS_mpi};SKEIN_CHECK_PACKAGES=${packages}")
  endforeach()
endif()
