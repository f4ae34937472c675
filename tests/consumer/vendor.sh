#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The folder of scripts/vendor stands for packages that are not installed: an example is built with fmt, xsimd and JSON from there.
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
cmake -S "$repository" -B "$folder/build" -DSKEIN_VENDOR="$folder/vendor" -DSKEIN_TESTS=OFF -DSKEIN_BENCH=OFF -DSKEIN_INSTALL=OFF -DSKEIN_CUDA=OFF \
  -DSKEIN_ONEDNN=OFF -DSKEIN_MPI=OFF -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DCMAKE_DISABLE_FIND_PACKAGE_xsimd=ON \
  -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON | tee "$folder/configure.txt"
grep -q "fmt/format.h from $folder/vendor" "$folder/configure.txt"
cmake --build "$folder/build" --target example_01_tensors
"$folder/build/examples/01_tensors"
