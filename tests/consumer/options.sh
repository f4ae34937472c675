#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Options of the compiler that the library cannot be compiled with are refused in one sentence, which is the first error; and so are an xsimd
# that it does not know, and an fmt that is too old, which is the only error.
# Usage: options.sh SOURCE WORK
set -euo pipefail
source=$1 work=$2
compiler=${CXX:-g++}
rm -rf "$work"
mkdir -p "$work"
cd "$work"
mkdir xsimd
printf '#define XSIMD_VERSION_MAJOR 13\n' >xsimd/xsimd.hpp
printf '#include <skein/core/text.hpp>\n#if SKEIN_WITH_XSIMD\n#include <skein/tensor/simd.hpp>\n#endif\n' >main.cpp

# refused WORDS OPTION...: the first error has the words.
refused() {
  local words=$1
  shift
  if "$compiler" -std=c++20 "$@" -I "$source/include" -fsyntax-only main.cpp 2>log; then
    echo "$* is taken"
    exit 1
  fi
  if ! grep -m 1 'error:' log | grep -qF "$words"; then
    echo "the first error with $* does not say '$words':"
    head -n 20 log
    exit 1
  fi
}
refused "compile with -std=c++20" -std=c++17
refused "compile without -fno-exceptions" -fno-exceptions
refused "add -fno-finite-math-only" -ffast-math
refused "add -fno-finite-math-only" -Ofast
refused "skein takes xsimd 8" -DSKEIN_WITH_XSIMD=1 -I .
mkdir old old/fmt
printf '#define FMT_VERSION 80101\n' >old/fmt/format.h
printf '#include <skein/tensor/format.hpp>\n' >main.cpp
refused "needs fmt 9 or newer: apt install libfmt-dev" -I old
if [ "$(grep -c 'error:' log)" -ne 1 ]; then
  echo "an fmt 8 leads to more errors than the one that names it:"
  head -n 20 log
  exit 1
fi
printf '#include <skein/core/text.hpp>\n' >main.cpp
"$compiler" -std=c++20 -ffast-math -fno-finite-math-only -I "$source/include" -fsyntax-only main.cpp
echo "what the library cannot be compiled with is refused in a sentence"
