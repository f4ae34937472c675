#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cuBLASLt and cuSPARSE in a Python environment, as pip lays them out: found there, and what is missing is named.
# Usage: pip_cuda.sh <repository> <folder of its own>
set -euo pipefail
repository=$1
folder=$2
rm -rf "$folder"
packages=$folder/venv/lib/python3.12/site-packages/nvidia/cu13
mkdir -p "$packages/include" "$packages/lib" "$folder/source"
cat >"$folder/source/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(pip_cuda LANGUAGES NONE)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
set(CUDAToolkit_INCLUDE_DIRS "$folder/no_toolkit")
function(skein_python_packages result)
  set(\${result} "$folder/venv/lib/python3.12/site-packages" PARENT_SCOPE)
endfunction()
list(APPEND CMAKE_MODULE_PATH "$repository/cmake")
find_package(SkeinCudaLibraries)
message(STATUS "found \${SkeinCudaLibraries_FOUND}, missing: \${SkeinCudaLibraries_MISSING}")
if(SkeinCudaLibraries_FOUND)
  get_target_property(library skein_cuda::cublasLt IMPORTED_LOCATION)
  get_target_property(include skein_cuda::cusparse INTERFACE_INCLUDE_DIRECTORIES)
  message(STATUS "\${library} \${include}")
endif()
EOF
configure() {
  rm -rf "$folder/build"
  cmake -S "$folder/source" -B "$folder/build" -DCMAKE_MAKE_PROGRAM=true -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF
}
touch "$packages/include/cublasLt.h" "$packages/lib/libcublasLt.so.13" "$packages/lib/libcusparse.so.12"
configure | tee "$folder/without.txt"
grep -q "found FALSE, missing: cusparse.h$" "$folder/without.txt"
touch "$packages/include/cusparse.h"
configure | tee "$folder/with.txt"
grep -q "found TRUE, missing: *$" "$folder/with.txt"
grep -q "$packages/lib/libcublasLt.so.13 $packages/include" "$folder/with.txt"
echo "cuBLASLt and cuSPARSE are found where pip puts them"
