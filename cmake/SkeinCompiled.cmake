# SPDX-License-Identifier: Apache-2.0
# skein::compiled and skein::compiled_mpi: skein::skein and skein::mpi with the bodies of what does not depend on a network in a library
# (src/*.cpp). A program links the one form or the other. Program and library have to agree on the instruction set, which is part of every
# symbol's name: so the library hands its own on.

# skein_compiled_options(<target> <scope> <definition>): what the library and whoever is linked to it are compiled with.
function(skein_compiled_options target scope definition)
  target_compile_definitions(${target} ${scope} ${definition}=1)
  if(SKEIN_MARCH)
    target_compile_options(${target} ${scope} $<$<COMPILE_LANGUAGE:CXX>:-march=${SKEIN_MARCH}>
      $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-march=${SKEIN_MARCH}>)    # of nvcc, the host code of files .cu
  endif()
endfunction()

# skein_add_compiled(<name> <definition> <links> <sources>...): the library skein_<name>, also skein::<name>.
function(skein_add_compiled name definition links)
  set(target skein_${name})
  add_library(${target} STATIC ${ARGN})
  add_library(skein::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(config IN LISTS CMAKE_CONFIGURATION_TYPES CMAKE_BUILD_TYPE ITEMS Release)    # the package looks for one name, whatever CMAKE_DEBUG_POSTFIX says
    string(TOUPPER "${config}" config)
    set_target_properties(${target} PROPERTIES ${config}_POSTFIX "")
  endforeach()
  target_link_libraries(${target} PUBLIC ${links})
  skein_compiled_options(${target} PUBLIC ${definition})
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    target_compile_options(${target} PRIVATE -O2)             # a project without a build type means its own files by that
  endif()
  if(NOT SKEIN_COMPILED)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
endfunction()
