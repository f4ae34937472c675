# SPDX-License-Identifier: Apache-2.0
# cuBLASLt and cuSPARSE, by their headers and libraries: in the CUDA toolkit, the system, or the folders nvidia/cu13 (nvidia/cublas and
# nvidia/cusparse with CUDA 12) of a Python environment, where pip's nvidia-cublas and nvidia-cusparse lie. Their wheels have no library
# without a version in its name. Makes skein_cuda::cublasLt and skein_cuda::cusparse; SkeinCudaLibraries_MISSING says what there is not.
skein_python_packages(skein_python_folders)
set(SkeinCudaLibraries_MISSING "")
set(skein_cuda_package_cublasLt cublas)
set(skein_cuda_package_cusparse cusparse)
set(skein_cuda_names_cublasLt cublasLt libcublasLt.so.13 libcublasLt.so.12)
set(skein_cuda_names_cusparse cusparse libcusparse.so.12)
foreach(part cublasLt cusparse)
  set(skein_cuda_python "")
  foreach(folder IN LISTS skein_python_folders)
    list(APPEND skein_cuda_python "${folder}/nvidia/cu13" "${folder}/nvidia/${skein_cuda_package_${part}}")
  endforeach()
  find_path(SkeinCudaLibraries_${part}_INCLUDE_DIR ${part}.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS ${skein_cuda_python} PATH_SUFFIXES include)
  find_library(SkeinCudaLibraries_${part}_LIBRARY NAMES ${skein_cuda_names_${part}} HINTS ${CUDAToolkit_LIBRARY_DIR} PATHS ${skein_cuda_python}
               PATH_SUFFIXES lib lib64)
  mark_as_advanced(SkeinCudaLibraries_${part}_INCLUDE_DIR SkeinCudaLibraries_${part}_LIBRARY)
  if(NOT SkeinCudaLibraries_${part}_INCLUDE_DIR)
    list(APPEND SkeinCudaLibraries_MISSING "${part}.h")
  endif()
  if(NOT SkeinCudaLibraries_${part}_LIBRARY)
    list(APPEND SkeinCudaLibraries_MISSING "lib${part}.so")
  endif()
  if(SkeinCudaLibraries_${part}_INCLUDE_DIR AND SkeinCudaLibraries_${part}_LIBRARY AND NOT TARGET skein_cuda::${part})
    add_library(skein_cuda::${part} UNKNOWN IMPORTED)
    set_target_properties(skein_cuda::${part} PROPERTIES IMPORTED_LOCATION "${SkeinCudaLibraries_${part}_LIBRARY}")
    # A toolkit's folder comes with nvcc already; named again it would come before the system's own.
    if(NOT SkeinCudaLibraries_${part}_INCLUDE_DIR IN_LIST CUDAToolkit_INCLUDE_DIRS)
      set_target_properties(skein_cuda::${part} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${SkeinCudaLibraries_${part}_INCLUDE_DIR}")
    endif()
  endif()
endforeach()
list(JOIN SkeinCudaLibraries_MISSING ", " SkeinCudaLibraries_MISSING)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SkeinCudaLibraries REQUIRED_VARS
  SkeinCudaLibraries_cublasLt_LIBRARY SkeinCudaLibraries_cublasLt_INCLUDE_DIR SkeinCudaLibraries_cusparse_LIBRARY SkeinCudaLibraries_cusparse_INCLUDE_DIR)
