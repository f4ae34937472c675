# SPDX-License-Identifier: Apache-2.0
# NCCL, by its header and its library (it has no CMake config): in the CUDA toolkit, the system, below NCCL_ROOT, or in the folder
# nvidia/nccl of a Python environment, as PyTorch installs it. Makes skein_nccl::nccl.
skein_python_packages(skein_python_folders)
list(TRANSFORM skein_python_folders APPEND "/nvidia/nccl" OUTPUT_VARIABLE skein_nccl_python)
set(skein_nccl_hints "${NCCL_ROOT}" "$ENV{NCCL_ROOT}" "$ENV{NCCL_HOME}" "${CUDAToolkit_LIBRARY_ROOT}" "${CUDAToolkit_TARGET_DIR}")
find_path(SkeinNCCL_INCLUDE_DIR nccl.h HINTS ${skein_nccl_hints} ${CUDAToolkit_INCLUDE_DIRS} PATHS ${skein_nccl_python}
          PATH_SUFFIXES include)
find_library(SkeinNCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${skein_nccl_hints} ${CUDAToolkit_LIBRARY_DIR}
             PATHS ${skein_nccl_python} PATH_SUFFIXES lib lib64)
mark_as_advanced(SkeinNCCL_INCLUDE_DIR SkeinNCCL_LIBRARY)

set(SkeinNCCL_VERSION "")
if(SkeinNCCL_INCLUDE_DIR)
  set(skein_nccl_parts "")
  file(STRINGS "${SkeinNCCL_INCLUDE_DIR}/nccl.h" skein_nccl_lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  foreach(part MAJOR MINOR PATCH)
    if("${skein_nccl_lines}" MATCHES "NCCL_${part} +([0-9]+)")
      list(APPEND skein_nccl_parts "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  list(JOIN skein_nccl_parts "." SkeinNCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SkeinNCCL
  REQUIRED_VARS SkeinNCCL_LIBRARY SkeinNCCL_INCLUDE_DIR VERSION_VAR SkeinNCCL_VERSION)
if(SkeinNCCL_FOUND AND NOT TARGET skein_nccl::nccl)
  add_library(skein_nccl::nccl UNKNOWN IMPORTED)
  set_target_properties(skein_nccl::nccl PROPERTIES
    IMPORTED_LOCATION "${SkeinNCCL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${SkeinNCCL_INCLUDE_DIR}")
endif()
