# SPDX-License-Identifier: Apache-2.0
# cuDNN 9, by its header and its library (it has no CMake config): in the CUDA toolkit, the system, below CUDNN_ROOT, or in the folder
# nvidia/cudnn of a Python environment, as PyTorch installs it. Makes skein_cudnn::cudnn.
skein_python_packages(skein_python_folders)
list(TRANSFORM skein_python_folders APPEND "/nvidia/cudnn" OUTPUT_VARIABLE skein_cudnn_python)
set(skein_cudnn_hints "${CUDNN_ROOT}" "$ENV{CUDNN_ROOT}" "$ENV{CUDNN_PATH}" "$ENV{CUDNN_HOME}" "${CUDAToolkit_LIBRARY_ROOT}"
    "${CUDAToolkit_TARGET_DIR}")
find_path(SkeinCuDNN_INCLUDE_DIR cudnn.h HINTS ${skein_cudnn_hints} ${CUDAToolkit_INCLUDE_DIRS} PATHS ${skein_cudnn_python}
          PATH_SUFFIXES include)
find_library(SkeinCuDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${skein_cudnn_hints} ${CUDAToolkit_LIBRARY_DIR}
             PATHS ${skein_cudnn_python} PATH_SUFFIXES lib lib64)
mark_as_advanced(SkeinCuDNN_INCLUDE_DIR SkeinCuDNN_LIBRARY)

set(SkeinCuDNN_VERSION "")
if(SkeinCuDNN_INCLUDE_DIR AND EXISTS "${SkeinCuDNN_INCLUDE_DIR}/cudnn_version.h")
  set(skein_cudnn_parts "")
  file(STRINGS "${SkeinCuDNN_INCLUDE_DIR}/cudnn_version.h" skein_cudnn_lines REGEX "^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
  foreach(part MAJOR MINOR PATCHLEVEL)
    if("${skein_cudnn_lines}" MATCHES "CUDNN_${part} +([0-9]+)")
      list(APPEND skein_cudnn_parts "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  list(JOIN skein_cudnn_parts "." SkeinCuDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SkeinCuDNN
  REQUIRED_VARS SkeinCuDNN_LIBRARY SkeinCuDNN_INCLUDE_DIR VERSION_VAR SkeinCuDNN_VERSION)
if(SkeinCuDNN_FOUND AND SkeinCuDNN_VERSION VERSION_LESS 9)
  message(STATUS "cuDNN ${SkeinCuDNN_VERSION} is older than 9, which skein needs: not used")
elseif(SkeinCuDNN_FOUND AND NOT TARGET skein_cudnn::cudnn)
  add_library(skein_cudnn::cudnn UNKNOWN IMPORTED)
  set_target_properties(skein_cudnn::cudnn PROPERTIES
    IMPORTED_LOCATION "${SkeinCuDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${SkeinCuDNN_INCLUDE_DIR}")
endif()
