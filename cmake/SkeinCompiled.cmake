# SPDX-License-Identifier: Apache-2.0
# skein::compiled: skein::skein with the bodies of what does not depend on a network in a library (src/*.cpp). A program links the one or the
# other. Program and library have to agree on the instruction set, which is part of every symbol's name: so the library hands its own on.

# skein_compiled_options(<target> <scope>): what the library and whoever is linked to it are compiled with.
function(skein_compiled_options target scope)
  target_compile_definitions(${target} ${scope} SKEIN_COMPILED=1)
  if(SKEIN_MARCH)
    target_compile_options(${target} ${scope} $<$<COMPILE_LANGUAGE:CXX>:-march=${SKEIN_MARCH}>)
  endif()
endfunction()

macro(skein_add_compiled)
  file(GLOB skein_sources CONFIGURE_DEPENDS src/*.cpp)
  add_library(skein_compiled STATIC ${skein_sources})
  add_library(skein::compiled ALIAS skein_compiled)
  set_target_properties(skein_compiled PROPERTIES EXPORT_NAME compiled POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(skein_compiled PUBLIC skein)
  skein_compiled_options(skein_compiled PUBLIC)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    target_compile_options(skein_compiled PRIVATE -O2)        # a project without a build type means its own files by that
  endif()
  if(NOT SKEIN_COMPILED)
    set_target_properties(skein_compiled PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
endmacro()
