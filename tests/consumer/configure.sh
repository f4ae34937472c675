#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What configuring alone shows: which instruction set is chosen, for the library that is installed too, what the summary says of it, what the
# package leaves of a project's own variables, and what is refused in a sentence.
# Usage: configure.sh SOURCE WORK
set -euo pipefail
source=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
unset CMAKE_BUILD_TYPE CMAKE_GENERATOR CXXFLAGS
faults=0
parts=(-DSKEIN_CUDA=OFF -DSKEIN_GLOO=OFF -DSKEIN_TESTS=OFF -DSKEIN_BENCH=OFF)

# fault NAME WORDS: what is wrong, and what was said.
fault() {
  echo "FAULT: $2; it says:"
  sed 's/^/    /' "$work/$1.txt"
  faults=$((faults + 1))
}
# skein NAME [cmake options]: configures skein itself in $work/NAME; its words are in NAME.txt, in one line in NAME.line.
skein() {
  local name=$1 status=0
  shift
  cmake -S "$source" -B "$work/$name" -G Ninja "${parts[@]}" "$@" >"$work/$name.txt" 2>&1 || status=$?
  tr -s ' \n' '  ' <"$work/$name.txt" >"$work/$name.line"
  return $status
}
# project NAME LANGUAGES LINES [cmake options]: the same of a project.
project() {
  local name=$1 languages=$2 lines=$3 status=0
  shift 3
  mkdir -p "$work/sources_$name"
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(p %s)\n%s\n' "$languages" "$lines" >"$work/sources_$name/CMakeLists.txt"
  : >"$work/sources_$name/main.cpp"
  cmake -S "$work/sources_$name" -B "$work/$name" -G Ninja "$@" >"$work/$name.txt" 2>&1 || status=$?
  tr -s ' \n' '  ' <"$work/$name.txt" >"$work/$name.line"
  return $status
}
says() { grep -qE -e "$2" "$work/$1.line"; }

# ---- the instruction set
skein own || fault own "skein does not configure"
says own 'skein [0-9.]+: [A-Za-z]+ [0-9.]+, Release, -march=native ' || fault own "the summary does not name what the programs are compiled for"
skein installed -DSKEIN_COMPILED=ON || fault installed "skein does not configure with its library"
grep -qx 'set(SKEIN_MARCH "")' "$work/installed/skeinConfig.cmake" ||
  fault installed "a library that is installed is for the machine that compiles it, though nobody has said so"
says installed 'skein::compiled is installed, so .*-DSKEIN_MARCH=' || fault installed "nothing says how the instruction set of the library is chosen"
if says installed '-march=native --' || grep -q -e -march=native "$work/installed/build.ninja"; then
  fault installed "some programs are compiled for another instruction set than the library"
fi
skein chosen -DSKEIN_COMPILED=ON -DSKEIN_MARCH=x86-64-v3 -DSKEIN_EXAMPLES=OFF || fault chosen "skein does not configure for x86-64-v3"
says chosen ', Release, -march=x86-64-v3 |[0-9], -march=x86-64-v3 ' || fault chosen "the summary does not name x86-64-v3"
grep -qx 'set(SKEIN_MARCH "x86-64-v3")' "$work/chosen/skeinConfig.cmake" || fault chosen "the package does not hand x86-64-v3 on"
skein nothing -DSKEIN_EXAMPLES=OFF || fault nothing "skein does not configure without programs"
if says nothing '-march='; then fault nothing "the summary names an instruction set where nothing is compiled"; fi
project both CXX "add_subdirectory($source skein)
get_target_property(options skein::compiled INTERFACE_COMPILE_OPTIONS)
message(STATUS \"options: \${options}\")" "${parts[@]}" -DSKEIN_MARCH=x86-64-v3 || fault both "a project with SKEIN_MARCH does not configure"
says both 'options: .*CXX>:-march=x86-64-v3' || fault both "SKEIN_MARCH is not for files .cpp of who links the library"
says both 'options: .*CUDA.*>:-Xcompiler=-march=x86-64-v3' || fault both "SKEIN_MARCH is not for files .cu of who links the library"

if command -v nvcc >/dev/null; then                          # one PTX for all, whatever their order: that of the oldest
  skein gpus -DSKEIN_CUDA=AUTO -DSKEIN_CUDA_ARCHITECTURES="100;80;90" || fault gpus "skein does not configure for GPUs"
  if grep -q 'arch=compute_' "$work/gpus/build.ninja" && ! grep -q 'arch=compute_80,code=.sm_100,sm_80,sm_90' "$work/gpus/build.ninja"; then
    fault gpus "the code for 100, 80 and 90 is not made of that for 80"
  fi
fi

# ---- the package, and variables of a project
skein package -DSKEIN_EXAMPLES=OFF || fault package "skein does not configure"
cmake --install "$work/package" --prefix "$work/prefix" >/dev/null
names="component components definition definitions folder folders form found header headers library libraries link links name names other
  part parts result root target targets version why_not"
project variables CXX "foreach(each $(tr -s '\n' ' ' <<<"$names"))
  set(\${each} \"of the project\")
endforeach()
find_package(skein REQUIRED OPTIONAL_COMPONENTS compiled compiled_mpi mpi xtensor lapack images hdf5)
foreach(own $(tr -s '\n' ' ' <<<"$names"))
  if(NOT \"\${\${own}}\" STREQUAL \"of the project\")
    message(STATUS \"lost: \${own} is \${\${own}}\")
  endif()
endforeach()" -DCMAKE_PREFIX_PATH="$work/prefix" || fault variables "a project does not find the package"
if says variables 'lost: '; then fault variables "find_package(skein) changes variables of the project"; fi
if project of_c C 'find_package(skein REQUIRED COMPONENTS mpi)' -DCMAKE_PREFIX_PATH="$work/prefix"; then
  fault of_c "a project without C++ has skein::mpi"
fi
says of_c 'component mpi cannot be had: .*this project has not enabled C\+\+' || fault of_c "a project without C++ is not told so"

# ---- what is there, or is not
skein no_fmt -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DSKEIN_VENDOR="$work/none" || fault no_fmt "skein does not configure without fmt"
says no_fmt 'out: fmt -- skein/tensor/format.hpp cannot be included; apt install libfmt-dev' || fault no_fmt "the summary does not say what is missing without fmt"
says no_fmt 'SKEIN_VENDOR to the folder of scripts/vendor' || fault no_fmt "nothing says where the folder of scripts/vendor is to be named"
project xsimd CXX "add_library(xsimd INTERFACE)
find_package(skein REQUIRED)
add_executable(program main.cpp)
target_link_libraries(program skein::skein)" -DCMAKE_PREFIX_PATH="$work/prefix" || fault xsimd "an own target xsimd without folders of its own is not taken"
if skein several -G "Ninja Multi-Config" -DSKEIN_TESTS=ON -DSKEIN_EXAMPLES=OFF; then fault several "the tests are configured for several configurations"; fi
says several 'Ninja Multi-Config has several: configure with ' || fault several "several configurations of the tests are not refused in a sentence"
skein several_programs -G "Ninja Multi-Config" || fault several_programs "the examples do not configure for several configurations"

# ---- presets, in a folder that scripts/test has configured with other options
if [ -e "$source/CMakePresets.json" ]; then
  cmake -S "$source" -B "$work/shared" -G Ninja "${parts[@]}" -DSKEIN_JOIN_TESTS=ON >"$work/shared.txt" 2>&1 || fault shared "skein does not configure"
  cmake -S "$source" -B "$work/shared" --preset release >"$work/shared.txt" 2>&1 || fault shared "skein does not configure by the preset release"
  for wanted in SKEIN_JOIN_TESTS:BOOL=false SKEIN_BENCH:BOOL=true; do
    grep -qix "$wanted" "$work/shared/CMakeCache.txt" || fault shared "the preset release leaves what scripts/test has set: not $wanted"
  done
  cmake -S "$source" -B "$work/shared" -DSKEIN_JOIN_TESTS=ON --preset asan >"$work/shared.txt" 2>&1 || fault shared "skein does not configure by the preset asan"
  for wanted in SKEIN_JOIN_TESTS:BOOL=on SKEIN_BENCH:BOOL=false; do
    grep -qix "$wanted" "$work/shared/CMakeCache.txt" || fault shared "the preset asan is not what it says, or stands before the command line: not $wanted"
  done
fi

[ $faults -eq 0 ] || exit 1
echo "what is configured is what was said"
