#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A project that brings its own fmt, xsimd or nlohmann-json: its targets are looked at, not what else is installed. An xsimd other than 8 and
# an fmt before 9 are left out, with a word. A project of old CMake rules finds the package too.
# Usage: own_dependencies.sh SOURCE WORK
set -euo pipefail
source=$1 work=$2
rm -rf "$work"
mkdir -p "$work/installed"

# headers FOLDER FMT XSIMD: what the versions are read of.
headers() {
  mkdir -p "$work/$1/fmt" "$work/$1/xsimd/config"
  printf '#define FMT_VERSION %s\n' "$2" >"$work/$1/fmt/base.h"
  printf '#define XSIMD_VERSION_MAJOR %s\n#define XSIMD_VERSION_MINOR 1\n#define XSIMD_VERSION_PATCH 0\n' "$3" >"$work/$1/xsimd/config/xsimd_config.hpp"
}
headers old 80101 8
headers new 110002 13
# Installed: fmt 8, which is too old. What a project has of its own goes before it.
printf 'if(NOT TARGET fmt::fmt)\n  add_library(fmt::fmt INTERFACE IMPORTED)\nendif()\n' >"$work/installed/fmt-config.cmake"
printf 'set(PACKAGE_VERSION 8.1.1)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n' >"$work/installed/fmt-config-version.cmake"

# project NAME VERSION LINES [cmake options]: configures a project; its words are in NAME.txt. VERSION: the CMake that it asks for.
project() {
  local name=$1 version=$2 lines=$3
  shift 3
  mkdir -p "$work/$name"
  cat >"$work/$name/CMakeLists.txt" <<END
cmake_minimum_required(VERSION $version)
project($name CXX)
foreach(part CUDA MPI GLOO ONEDNN)
  set(SKEIN_\${part} OFF CACHE STRING "")
endforeach()
$lines
get_target_property(definitions skein::skein INTERFACE_COMPILE_DEFINITIONS)
get_target_property(links skein::skein INTERFACE_LINK_LIBRARIES)
get_property(found GLOBAL PROPERTY SKEIN_FOUND)
get_property(summary GLOBAL PROPERTY SKEIN_SUMMARY)
message(STATUS "definitions: \${definitions}; links: \${links}; found: \${found}; summary: \${summary}")
END
  cmake -S "$work/$name" -B "$work/build_$name" "$@" >"$work/$name.txt" 2>&1
}
# fails TEXT: what was expected, and what was said.
fails() {
  echo "$1; it says:"
  cat "$2"
  exit 1
}
# own NAME FOLDER: lines that make a project's own target, as FetchContent leaves it.
own() { printf 'add_library(%s INTERFACE)\ntarget_include_directories(%s INTERFACE $<BUILD_INTERFACE:%s> $<INSTALL_INTERFACE:include>)\n' "$1" "$1" "$work/$2"; }
skein="add_subdirectory($source skein)"

project xsimd_13 3.25 "$(own xsimd new)
$skein" || fails "a project with an xsimd 13 of its own does not configure" "$work/xsimd_13.txt"
if grep -q 'definitions: .*SKEIN_WITH_XSIMD=1' "$work/xsimd_13.txt" || ! grep -q 'skein takes version 8, and here is 13\.1\.0' "$work/xsimd_13.txt"; then
  fails "a project's own xsimd 13 is taken, or not named" "$work/xsimd_13.txt"
fi
project xsimd_8 3.25 "$(own xsimd old)
$skein" || fails "a project with an xsimd 8 of its own does not configure" "$work/xsimd_8.txt"
grep -q 'definitions: .*SKEIN_WITH_XSIMD=1.*xsimd/8\.1\.0' "$work/xsimd_8.txt" || fails "a project's own xsimd 8 is not taken" "$work/xsimd_8.txt"

mkdir -p "$work/new/nlohmann/detail"
printf '#define NLOHMANN_JSON_VERSION_%s // a word\n' 'MAJOR 3' 'MINOR 99' 'PATCH 7' >"$work/new/nlohmann/detail/abi_macros.hpp"
project json 3.25 "$(own nlohmann_json new)
add_library(nlohmann_json::nlohmann_json ALIAS nlohmann_json)
$skein" || fails "a project with an nlohmann-json of its own does not configure" "$work/json.txt"
grep -q 'nlohmann_json/3\.99\.7' "$work/json.txt" || fails "a project's own nlohmann-json is not named" "$work/json.txt"

project fmt_11 3.25 "$(own fmt new)
add_library(fmt::fmt ALIAS fmt)
$skein" -Dfmt_DIR="$work/installed" || fails "a project's own fmt 11 is refused where fmt 8 is installed" "$work/fmt_11.txt"
grep -q 'fmt/11\.0\.2' "$work/fmt_11.txt" || fails "a project's own fmt 11 is not named" "$work/fmt_11.txt"
project fmt_8 3.25 "$(own fmt old)
add_library(fmt::fmt ALIAS fmt)
$skein" || fails "a project with an fmt 8 of its own does not configure" "$work/fmt_8.txt"
project installed_fmt_8 3.25 "$skein" -Dfmt_DIR="$work/installed" || fails "skein does not configure where fmt 8 is installed" "$work/installed_fmt_8.txt"
for name in fmt_8 installed_fmt_8; do
  if grep -q 'links: .*fmt::fmt.*found: ' "$work/$name.txt" || ! grep -q 'skein takes version 9 or newer, and the target fmt::fmt here is 8\.1\.1' "$work/$name.txt"; then
    fails "an fmt 8 is taken, or not named" "$work/$name.txt"
  fi
done
grep -q 'make that target of a newer one' "$work/fmt_8.txt" || fails "a project with an fmt 8 of its own is told of another's folder" "$work/fmt_8.txt"
grep -q "set fmt_DIR to the folder of a newer one's package" "$work/installed_fmt_8.txt" ||
  fails "an installed fmt 8 is to be replaced by what its folder in the cache goes before" "$work/installed_fmt_8.txt"

project install 3.25 "set(SKEIN_INSTALL ON CACHE BOOL \"\")
$skein" || fails "skein does not configure" "$work/install.txt"
cmake --install "$work/build_install" --prefix "$work/prefix" >/dev/null
case $(cmake --version) in
  *"version 3."*)
    project old_rules 3.1 'find_package(skein REQUIRED)' -DCMAKE_PREFIX_PATH="$work/prefix" -Wno-deprecated ||
      fails "a project of CMake 3.1's rules does not find the package" "$work/old_rules.txt" ;;  # CMake 4 has no such rules
esac
if grep -l 'takes version 8, and here is 8' "$work"/*.txt; then
  fails "an xsimd 8 that is installed is not taken" "$work/old_rules.txt"
fi
echo "a project's own fmt, xsimd and nlohmann-json are looked at, and rules of old CMake do not matter"
