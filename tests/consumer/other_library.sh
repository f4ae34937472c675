#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that is linked to a skein::compiled of another instruction set, or of other SKEIN_WITH_..., is refused by the linker, in a
# message that names the reason; linked to its own it runs. Objects of one source are enough: the symbol is in every program.
# Usage: other_library.sh SOURCE WORK
set -euo pipefail
source=$1 work=$2
compiler=${CXX:-g++}
rm -rf "$work"
mkdir -p "$work"
cd "$work"
cat >main.cpp <<'END'
#include <skein/core/text.hpp>
#include <cstdio>
int main() { std::puts(skein::text("{} of {}", 1, 2).c_str()); }
END

# compile NAME SOURCE [options]: an object of the compiled form.
compile() {
  local name=$1 file=$2
  shift 2
  "$compiler" -std=c++20 -O1 -I "$source/include" -DSKEIN_COMPILED=1 "$@" -c "$file" -o "$name.o"
}
# refused PROGRAM LIBRARY WORDS: they do not link, and the message has the words.
refused() {
  if "$compiler" "$1.o" "$2.o" -o program -pthread >log 2>&1; then
    echo "$1 was linked to $2"
    exit 1
  fi
  if ! grep -q "undefined reference to .*$3::this_library_was_built_with_other_options_or_instruction_set" log; then
    echo "$1 linked to $2 does not say that the library was built otherwise, for $3:"
    cat log
    exit 1
  fi
}

compile library "$source/src/core.cpp"
compile main main.cpp
"$compiler" main.o library.o -o program -pthread
[ "$(./program)" = "1 of 2" ]
compile with_json main.cpp -DSKEIN_WITH_JSON=1
refused with_json library "j1"
if [ "$(uname -m)" = x86_64 ]; then
  compile avx2 main.cpp -mavx2 -mfma
  refused avx2 library "_avx2_x0o0z0j0"
  compile library_avx2 "$source/src/core.cpp" -mavx2 -mfma
  refused main library_avx2 "_generic_x0o0z0j0"
  "$compiler" avx2.o library_avx2.o -o program -pthread
fi
echo "a library that was built otherwise is named by the linker"
