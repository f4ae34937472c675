# SPDX-License-Identifier: Apache-2.0
# oneDNN 2.6 or 3.x, by its C header and its library: Debian's package has no CMake config that works without OpenCL.
# Makes skein_onednn::onednn; looks below oneDNN_ROOT, DNNLROOT (oneAPI) and the usual places.
set(skein_onednn_hints "${oneDNN_ROOT}" "$ENV{oneDNN_ROOT}" "$ENV{DNNLROOT}")
find_path(SkeinOneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h HINTS ${skein_onednn_hints} PATH_SUFFIXES include)
find_library(SkeinOneDNN_LIBRARY dnnl HINTS ${skein_onednn_hints} PATH_SUFFIXES lib lib64)
mark_as_advanced(SkeinOneDNN_INCLUDE_DIR SkeinOneDNN_LIBRARY)

set(SkeinOneDNN_VERSION "")
if(SkeinOneDNN_INCLUDE_DIR)
  set(skein_onednn_parts "")
  file(STRINGS "${SkeinOneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" skein_onednn_lines
       REGEX "^#define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  foreach(part MAJOR MINOR PATCH)
    if("${skein_onednn_lines}" MATCHES "DNNL_VERSION_${part} +([0-9]+)")
      list(APPEND skein_onednn_parts "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  list(JOIN skein_onednn_parts "." SkeinOneDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SkeinOneDNN
  REQUIRED_VARS SkeinOneDNN_LIBRARY SkeinOneDNN_INCLUDE_DIR VERSION_VAR SkeinOneDNN_VERSION)
if(SkeinOneDNN_FOUND AND SkeinOneDNN_VERSION VERSION_LESS 2.6)
  message(STATUS "oneDNN ${SkeinOneDNN_VERSION} is older than 2.6, which skein needs: not used")
elseif(SkeinOneDNN_FOUND AND NOT TARGET skein_onednn::onednn)
  add_library(skein_onednn::onednn UNKNOWN IMPORTED)
  set_target_properties(skein_onednn::onednn PROPERTIES
    IMPORTED_LOCATION "${SkeinOneDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${SkeinOneDNN_INCLUDE_DIR}")
endif()
