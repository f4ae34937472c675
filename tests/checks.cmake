# SPDX-License-Identifier: Apache-2.0
# The checks that are not unit tests: every public header on its own, every example and wrong program with each compiler, the
# library's own rules, and consumers built from clean folders.

# ---- fuzz targets: clang's libFuzzer; each is a short run in the suite, 60 seconds with SKEIN_EXHAUSTIVE
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*.cpp)
list(APPEND registered ${fuzz_sources})
if(SKEIN_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SKEIN_FUZZ needs -DCMAKE_CXX_COMPILER=clang++: gcc has no libFuzzer")
  endif()
  set(seconds 2)
  if(SKEIN_EXHAUSTIVE)
    set(seconds 60)
  endif()
  foreach(source IN LISTS fuzz_sources)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(fuzz_${name} "${source}")
    skein_private(fuzz_${name})
    target_link_libraries(fuzz_${name} PRIVATE skein::skein)
    target_include_directories(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_compile_options(fuzz_${name} PRIVATE -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer,address,undefined)
    set(folder "${PROJECT_BINARY_DIR}/run/fuzz.${name}")
    file(MAKE_DIRECTORY "${folder}")
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} -max_total_time=${seconds} -rss_limit_mb=1024 -max_len=4096
             WORKING_DIRECTORY "${folder}")
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300)
  endforeach()
endif()
if(NOT SKEIN_TESTS)
  return()
endif()

# ---- flags of skein and of what it found, for compilers that are called directly
add_library(skein_flags OBJECT EXCLUDE_FROM_ALL support/main.cpp)
target_link_libraries(skein_flags PRIVATE skein::skein)
foreach(component mpi xtensor)
  if(TARGET skein::${component})
    target_link_libraries(skein_flags PRIVATE skein::${component})
  endif()
endforeach()
if(TARGET CLI11::CLI11)
  target_link_libraries(skein_flags PRIVATE CLI11::CLI11)
endif()
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
set(check "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/support/compile.py" --flags "${flags_file}")

# ---- every header on its own. The gate gives nvcc a house at a time: each alone took it five minutes, and is part of scripts/test --all.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/include/skein/*.hpp")
set(nvcc_houses "")
foreach(header IN LISTS headers)
  if((header MATCHES "comm/mpi/|skein/mpi.hpp" AND NOT SKEIN_HAS_mpi) OR (header MATCHES "xtensor.hpp" AND NOT SKEIN_HAS_xtensor)
     OR header MATCHES "/cuda/|/nccl/|skein/cuda.hpp|skein/nccl.hpp")
    continue()
  endif()
  foreach(compiler IN LISTS compilers)
    if(compiler STREQUAL "NVCC" AND header MATCHES "xtensor.hpp")
      continue()
    endif()
    # What stands on its own for clang++ and nvcc does for g++, which compiles it in the tests: two minutes, part of scripts/test --all.
    if(compiler STREQUAL "GXX" AND SKEIN_CHECK_CLANGXX AND NOT SKEIN_EXHAUSTIVE)
      continue()
    endif()
    if(compiler STREQUAL "NVCC" AND header MATCHES "^skein/([a-z]+)/" AND NOT SKEIN_EXHAUSTIVE)
      list(APPEND nvcc_houses ${CMAKE_MATCH_1})
      list(APPEND nvcc_${CMAKE_MATCH_1} ${header})
      continue()
    endif()
    add_test(NAME "header.${name_of_${compiler}}.${header}"
             COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} ${native_${compiler}} --header ${header})
    set_tests_properties("header.${name_of_${compiler}}.${header}" PROPERTIES LABELS "compile" TIMEOUT 300)
  endforeach()
endforeach()
list(REMOVE_DUPLICATES nvcc_houses)
foreach(house IN LISTS nvcc_houses)
  add_test(NAME "header.nvcc.skein/${house}" COMMAND ${check} --compiler ${SKEIN_CHECK_NVCC} --header ${nvcc_${house}})
  set_tests_properties("header.nvcc.skein/${house}" PROPERTIES LABELS "compile" TIMEOUT 300)
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
  file(GENERATE OUTPUT "${cuda_flags_file}" CONTENT
       "-diag-suppress=1675,2189,554,128\n-I$<JOIN:${folders},\n-I>\n$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},\n-D>\n>" TARGET skein_cuda_flags)
  foreach(header IN LISTS headers)
    if(NOT header MATCHES "/cuda/|/nccl/|skein/cuda.hpp|skein/nccl.hpp")
      continue()
    endif()
    skein_cuda_absent(absent "${PROJECT_SOURCE_DIR}/include/${header}")
    if(absent)
      continue()
    endif()
    add_test(NAME "header.nvcc.${header}"
             COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/support/compile.py" --flags "${cuda_flags_file}"
                     --compiler ${SKEIN_CHECK_NVCC} --header ${header})
    set_tests_properties("header.nvcc.${header}" PROPERTIES LABELS "compile;cuda" TIMEOUT 300)
  endforeach()
endif()

# ---- every example and fuzz target, with the compiler that does not build it
file(GLOB examples CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
     "${PROJECT_SOURCE_DIR}/examples/*.cpp" "${PROJECT_SOURCE_DIR}/examples/experiments/*.cpp" "fuzz/*.cpp")
set(other CLANGXX)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(other GXX)
endif()
if(SKEIN_HAS_mpi AND SKEIN_CHECK_${other})
  foreach(example IN LISTS examples)
    add_test(NAME "syntax.${name_of_${other}}.${example}"
             COMMAND ${check} --compiler ${SKEIN_CHECK_${other}} --native --source "${PROJECT_SOURCE_DIR}/${example}")
    set_tests_properties("syntax.${name_of_${other}}.${example}" PROPERTIES LABELS "compile" TIMEOUT 300)
  endforeach()
endif()

# ---- every bench, which the gate does not build
if(NOT SKEIN_BENCH AND SKEIN_HAS_mpi AND SKEIN_CHECK_GXX)
  file(GLOB benches CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/bench/*.cpp")
  foreach(bench IN LISTS benches)
    add_test(NAME "syntax.${bench}" COMMAND ${check} --compiler ${SKEIN_CHECK_GXX} --native --source "${PROJECT_SOURCE_DIR}/${bench}")
    set_tests_properties("syntax.${bench}" PROPERTIES LABELS "compile" TIMEOUT 300)
  endforeach()
endif()

# ---- wrong programs: one error, the sentence in it, and a twin that compiles
file(GLOB cases CONFIGURE_DEPENDS compile_fail/*.cpp)
list(APPEND registered ${cases})
foreach(case IN LISTS cases)
  get_filename_component(name "${case}" NAME_WE)
  foreach(compiler IN LISTS compilers)
    if(compiler STREQUAL "NVCC" AND NOT SKEIN_EXHAUSTIVE)            # six minutes: part of scripts/test --all
      continue()
    endif()
    add_test(NAME compile_fail.${name_of_${compiler}}.${name}
             COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} --wrong "${case}")
    set_tests_properties(compile_fail.${name_of_${compiler}}.${name} PROPERTIES LABELS "compile" TIMEOUT 300)
  endforeach()
endforeach()
foreach(compiler IN LISTS compilers)
  add_test(NAME compile_fail.runner.${name_of_${compiler}} COMMAND ${check} --compiler ${SKEIN_CHECK_${compiler}} --self-test)
  set_tests_properties(compile_fail.runner.${name_of_${compiler}} PROPERTIES LABELS "compile" TIMEOUT 300)
endforeach()

# ---- the house's own rules
list(JOIN registered "\n" registered_lines)
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/registered_tests.txt" CONTENT "${registered_lines}\n")
foreach(rule include_rules sources_registered licence_lines doc_snippets doc_links)
  add_test(NAME house.${rule} COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/house/${rule}.py"
           "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/registered_tests.txt")
  add_test(NAME house.${rule}.self_test COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/house/${rule}.py" --self-test)
  set_tests_properties(house.${rule} house.${rule}.self_test PROPERTIES LABELS house TIMEOUT 60)
endforeach()

add_test(NAME house.discover.self_test COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/support/discover.py" --self-test)
add_test(NAME house.bench_report.self_test COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/bench/report.py" --self-test)
add_test(NAME house.cuda_script COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/house/cuda_script.py" "${PROJECT_SOURCE_DIR}")
set_tests_properties(house.discover.self_test house.bench_report.self_test house.cuda_script PROPERTIES LABELS house TIMEOUT 60)
if(SKEIN_CHECK_GXX AND NOT SKEIN_SANITIZE)                    # counted, so the same on every machine
  add_test(NAME bench.overhead COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/bench/overhead.py" --compiler ${SKEIN_CHECK_GXX} --check)
  set_tests_properties(bench.overhead PROPERTIES LABELS house TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()

# ---- the harness for ranks: a failure on one rank fails the run, a lost rank is named
if(SKEIN_HAS_mpi)
  add_executable(test_harness house/harness/harness_cases.cpp)
  skein_private(test_harness)
  skein_test_options(test_harness)
  target_link_libraries(test_harness PRIVATE skein_test_mpi_main)
  target_precompile_headers(test_harness REUSE_FROM skein_test_mpi_main)
  if(SKEIN_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(test_harness PRIVATE -fpch-preprocess)
  endif()
  skein_mpirun(start 3)
  foreach(case passes fails_on_rank_2 hangs_on_rank_1)
    add_test(NAME house.harness.${case} COMMAND ${start} $<TARGET_FILE:test_harness> ${case})
    set_tests_properties(house.harness.${case} PROPERTIES LABELS "house;mpi" TIMEOUT 60 PROCESSORS 2)
  endforeach()
  set_tests_properties(house.harness.passes PROPERTIES PASS_REGULAR_EXPRESSION "All tests passed")
  set_tests_properties(house.harness.fails_on_rank_2 PROPERTIES PASS_REGULAR_EXPRESSION "---- rank 2.*1 failed")
  set_tests_properties(house.harness.hangs_on_rank_1 PROPERTIES ENVIRONMENT SKEIN_TEST_DEADLINE=3
    PASS_REGULAR_EXPRESSION "watchdog: rank 1 is still in \"hangs_on_rank_1\" after 3 seconds")
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

# ---- consumers, each from a clean folder; Conan takes the system's packages at the versions that were found here
if(NOT SKEIN_SANITIZE)
  get_property(packages GLOBAL PROPERTY SKEIN_FOUND)
  list(JOIN packages " " packages)
  foreach(consumer add_subdirectory bare fetch_content find_package conan)
    add_test(NAME consumer.${consumer} COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/consumer/run.sh" ${consumer}
             "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/run/consumer.${consumer}")
    set_tests_properties(consumer.${consumer} PROPERTIES LABELS consumer TIMEOUT 900 SKIP_RETURN_CODE 77
      ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER};SKEIN_CHECK_MPI=${SKEIN_HAS_mpi};SKEIN_CHECK_PACKAGES=${packages}")
  endforeach()
endif()
