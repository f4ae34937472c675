#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The folder of scripts/vendor stands for packages that are not installed: an example is built with fmt, xsimd and JSON from there, and
# without Python, as scripts/demo is on a machine that has none.
# Usage: vendor.sh <repository> <folder of its own>
set -euo pipefail
repository=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder"
if ! bash "$repository/scripts/vendor" --to "$folder/vendor"; then
  echo "skipped: not everything could be gathered here"
  exit 77
fi
configure() {
  cmake -S "$repository" -B "$folder/build" -DSKEIN_VENDOR="$folder/vendor" -DSKEIN_FORM=skein::skein -DSKEIN_TESTS=OFF -DSKEIN_BENCH=OFF -DSKEIN_INSTALL=OFF -DSKEIN_CUDA=OFF \
    -DSKEIN_ONEDNN=OFF -DSKEIN_MPI=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_xsimd=ON -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON | tee "$folder/configure.txt"
}
# Another xsimd than 8, whose names the library uses, is neither gathered nor taken.
mkdir -p "$folder/other/include"
cp -r "$folder/vendor/include/xsimd" "$folder/other/include/"
version=xsimd/config/xsimd_config.hpp
sed -i 's/^#define XSIMD_VERSION_MAJOR .*/#define XSIMD_VERSION_MAJOR 13/' "$folder/other/include/$version"
if CPATH="$folder/other/include" bash "$repository/scripts/vendor" --to "$folder/unused" 2>"$folder/said.txt" || ! grep -q "version 13, and skein takes 8" "$folder/said.txt"; then
  echo "scripts/vendor gathers xsimd 13"
  exit 1
fi
cp "$folder/vendor/include/$version" "$folder/xsimd_8.hpp"
cp "$folder/other/include/$version" "$folder/vendor/include/$version"
configure >/dev/null
grep -q "out: xsimd -- .*skein takes version 8, and here is 13" "$folder/configure.txt"
cp "$folder/xsimd_8.hpp" "$folder/vendor/include/$version"
configure
grep -q "fmt/format.h from $folder/vendor" "$folder/configure.txt"
cmake --build "$folder/build" --target example_01_tensors
"$folder/build/examples/01_tensors"
