#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a user's ten-line project in a clean folder and runs its program.
# Usage: run.sh add_subdirectory|bare|cuda|fetch_content|find_package|conan SOURCE WORK, the last three also as fetch_content_compiled, ...
# Exit status 77 says that the tool of this way (nvcc, git, conan) cannot be had here.
set -euo pipefail
way=${1%_compiled} source=$2 work=$3
form=skein::skein header_only=True march=()                # linked to the library, for this machine, where the way says so
if [ "$1" != "$way" ]; then form=skein::compiled header_only=False march=(-DSKEIN_COMPILED=ON -DSKEIN_MARCH=native); fi
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work/project"
cp "$source/test_package/main.cpp" "$work/project/"
export CMAKE_GENERATOR=Ninja
unset CMAKE_BUILD_TYPE CXXFLAGS
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

# project CMAKELISTS [cmake options]: configures, builds and runs the project.
project() {
  sed "s/ skein::skein)/ $form)/; s/-O2/-O1/" "$1" >"$work/project/CMakeLists.txt"    # what is compiled is the question, not how well
  shift
  rm -rf "$work/build"
  cmake -S "$work/project" -B "$work/build" "$@"
  cmake --build "$work/build"
  "$work/build/my_training"
}

# copy_checkout FOLDER: the files of the checkout as they are now, without what git ignores.
copy_checkout() {
  mkdir -p "$1"
  if git -C "$source" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    (cd "$source" && git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
      if [ -e "$file" ]; then printf '%s\0' "$file"; fi
    done | xargs -0 cp --parents -t "$1")
  else
    (cd "$source" && cp -r --parents -t "$1" CMakeLists.txt cmake include src LICENSE conanfile.py test_package)
  fi
}

# refused NAME WORDS [cmake options]: find_package fails, and says why.
refused() {
  local name=$1 words=$2
  shift 2
  mkdir -p "$work/refused_$name"
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(refused CXX)\nfind_package(skein REQUIRED COMPONENTS %s)\n' "$name" \
    >"$work/refused_$name/CMakeLists.txt"
  if cmake -S "$work/refused_$name" -B "$work/refused_$name/build" "$@" >"$work/refused_$name/log" 2>&1; then
    echo "find_package(skein COMPONENTS $name) was not refused"
    exit 1
  fi
  if ! tr -s ' \n' '  ' <"$work/refused_$name/log" | grep -qF "$words"; then
    echo "find_package(skein COMPONENTS $name) does not say: $words"
    cat "$work/refused_$name/log"
    exit 1
  fi
}

case $way in
  add_subdirectory)                        # with the umbrella header precompiled
    form=skein::headers_precompiled
    project "$here/add_subdirectory/CMakeLists.txt" -DSKEIN_FOLDER="$source"
    if ! [ -f "$work/build/CMakeFiles/my_training.dir/cmake_pch.hxx.gch" ]; then
      echo "skein::headers_precompiled: nothing was precompiled"
      exit 1
    fi ;;

  bare)                                    # none of the third parties that the core can do without
    project "$here/add_subdirectory/CMakeLists.txt" -DSKEIN_FOLDER="$source" -DSKEIN_ONEDNN=OFF -DSKEIN_MPI=OFF -DSKEIN_CUDA=OFF \
      -DCMAKE_DISABLE_FIND_PACKAGE_xsimd=ON -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON -DCMAKE_DISABLE_FIND_PACKAGE_xtensor=ON \
      -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON ;;

  cuda)                                    # the first program of docs/gpus.md, all of which nvcc has to take
    command -v nvcc >/dev/null || { echo "no nvcc here: install the CUDA toolkit"; exit 77; }
    cp "$source/examples/00_first_program.cu" "$work/project/main.cu"
    cp "$here/cuda/CMakeLists.txt" "$work/project/"
    if ! cmake -S "$work/project" -B "$work/build" -DSKEIN_FOLDER="$source" >"$work/configure.txt" 2>&1; then
      cat "$work/configure.txt"
      if grep -qE 'out: (cuda|nccl)' "$work/configure.txt"; then exit 77; fi
      exit 1
    fi
    cmake --build "$work/build" -v | tee "$work/build.txt"
    for option in -std=c++20 compute_80 compute_90 -Xcompiler=-march=native; do
      grep -q -e "$option" "$work/build.txt" || { echo "nvcc is not given $option"; exit 1; }
    done
    if grep -E 'include/skein/[^ ]*[(:][0-9].*warning' "$work/build.txt" >"$work/warnings.txt"; then
      echo "nvcc warns of the library's own headers, in every program of a user:"
      sort -u "$work/warnings.txt"
      exit 1
    fi ;;

  fetch_content)
    command -v git >/dev/null || { echo "no git here: apt install git"; exit 77; }
    copy_checkout "$work/repository"
    git -C "$work/repository" init -q -b main
    git -C "$work/repository" add -A -f
    git -C "$work/repository" -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false commit -q -m checkout
    project "$here/fetch_content/CMakeLists.txt" -DSKEIN_REPOSITORY="file://$work/repository" -DSKEIN_TAG=main "${march[@]}" ;;

  find_package)
    # An absolute folder of libraries, as some package managers give it; Conan installs with one below the prefix. And a postfix, which some
    # give what they build for debugging: the library has its name all the same.
    if [ "$form" = skein::compiled ]; then march+=(-DCMAKE_INSTALL_LIBDIR="$work/prefix/lib" -DCMAKE_RELEASE_POSTFIX=_r); fi
    cmake -S "$source" -B "$work/skein" -DSKEIN_TESTS=OFF -DSKEIN_EXAMPLES=OFF -DSKEIN_BENCH=OFF -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" "${march[@]}"
    if [ "$form" = skein::compiled ]; then cmake --build "$work/skein"; fi
    cmake --install "$work/skein" --prefix "$work/prefix" >/dev/null
    rm -rf "$work/skein"
    project "$source/test_package/CMakeLists.txt" -DCMAKE_PREFIX_PATH="$work/prefix"
    mkdir -p "$work/precompiled"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(p CXX)' 'find_package(skein REQUIRED OPTIONAL_COMPONENTS mpi)' \
      'get_target_property(options skein::skein INTERFACE_COMPILE_OPTIONS)' 'if(NOT options MATCHES "Clang.*-fconstexpr-steps")' \
      '  message(FATAL_ERROR "the installed skein::skein does not give clang++ its -fconstexpr-steps: ${options}")' 'endif()' \
      'add_library(alone STATIC main.cpp)' 'target_link_libraries(alone skein::headers_precompiled)' \
      'enable_language(C)' 'add_library(mixed STATIC main.cpp other.c)' 'target_link_libraries(mixed skein::headers_precompiled)' \
      'if(TARGET skein::mpi)' '  add_library(ranks STATIC main.cpp)' \
      '  target_link_libraries(ranks skein::headers_precompiled skein::mpi)' 'endif()' >"$work/precompiled/CMakeLists.txt"
    : >"$work/precompiled/main.cpp"
    : >"$work/precompiled/other.c"
    cmake -S "$work/precompiled" -B "$work/precompiled/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
    pch=$work/precompiled/build/CMakeFiles
    if ! grep -q skein/skein.hpp "$pch/alone.dir/cmake_pch.hxx" || grep -q skein/mpi.hpp "$pch/alone.dir/cmake_pch.hxx"; then
      echo "skein::headers_precompiled: not the umbrella header alone without MPI"
      exit 1
    fi
    if [ "${SKEIN_CHECK_MPI:-}" = TRUE ] && ! grep -q skein/mpi.hpp "$pch/ranks.dir/cmake_pch.hxx"; then
      echo "skein::headers_precompiled beside skein::mpi: skein/mpi.hpp is not precompiled"
      exit 1
    fi
    if [ -e "$pch/mixed.dir/cmake_pch.h" ] || ! [ -e "$pch/mixed.dir/cmake_pch.hxx" ]; then
      echo "skein::headers_precompiled: the umbrella header is precompiled as C too"
      exit 1
    fi
    mkdir -p "$work/optional"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(p CXX)' 'find_package(skein QUIET COMPONENTS quantum)' 'if(skein_FOUND)' \
      '  message(FATAL_ERROR "skein was found without a component that was asked for")' 'endif()' 'find_package(skein REQUIRED)' \
      'get_target_property(links skein::skein INTERFACE_LINK_LIBRARIES)' 'if(links MATCHES "fmt")' \
      '  message(FATAL_ERROR "skein::skein links an fmt that is not here: ${links}")' 'endif()' >"$work/optional/CMakeLists.txt"
    cmake -S "$work/optional" -B "$work/optional/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON >/dev/null
    component=mpi
    if [ "$form" = skein::compiled ]; then
      component=compiled_mpi
      # xtensor's package sets the prefix of its own where that of ours looks for its libraries.
      mkdir -p "$work/with_xtensor"
      printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(p CXX)' \
        'find_package(skein REQUIRED COMPONENTS compiled OPTIONAL_COMPONENTS xtensor)' >"$work/with_xtensor/CMakeLists.txt"
      cmake -S "$work/with_xtensor" -B "$work/with_xtensor/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
      if [ "${SKEIN_CHECK_MPI:-}" = TRUE ]; then
        refused compiled_mpi "skein::compiled_mpi needs skein::mpi, which cannot be had: switched off by SKEIN_MPI=OFF" \
          -DCMAKE_PREFIX_PATH="$work/prefix" -DSKEIN_MPI=OFF
      fi
    else
      refused compiled "installed without its library skein::compiled" -DCMAKE_PREFIX_PATH="$work/prefix"
      refused quantum "no such component; it has: mpi, gloo, cuda, nccl, xtensor, lapack, images, hdf5, and the libraries compiled and compiled_mpi" -DCMAKE_PREFIX_PATH="$work/prefix"
      refused mpi "switched off by SKEIN_MPI=OFF" -DCMAKE_PREFIX_PATH="$work/prefix" -DSKEIN_MPI=OFF
    fi
    if [ "${SKEIN_CHECK_MPI:-}" = TRUE ] && [ -f "$source/include/skein/skein.hpp" ]; then
      cp "$here/mpi_main.cpp" "$work/project/main.cpp"
      sed "s/0\.1 REQUIRED)/0.1 REQUIRED COMPONENTS $component)/; s/skein::skein/skein::$component/" "$source/test_package/CMakeLists.txt" \
        >"$work/with_mpi.txt"
      project "$work/with_mpi.txt" -DCMAKE_PREFIX_PATH="$work/prefix"
      [ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
      mpirun --oversubscribe --bind-to none -n 2 "$work/build/my_training"
    fi ;;

  conan)
    python=$(command -v python3) || { echo "no python3 here: apt install python3-venv"; exit 77; }
    venv=$(dirname "$work")/conan-venv
    if ! [ -x "$venv/bin/conan" ]; then
      "$python" -m venv "$venv" || { echo "no venv here: apt install python3-venv"; exit 77; }
      "$venv/bin/pip" install -q 'conan>=2.4,<3' || { echo "pip cannot get conan here"; rm -rf "$venv"; exit 77; }
    fi
    export CONAN_HOME=$work/home PATH=$venv/bin:$PATH
    conan profile detect --force >/dev/null 2>&1
    conan remote remove '*' >/dev/null
    {
      sed '/^compiler.cppstd=/d; s/^compiler=.*/&\ncompiler.cppstd=20/' "$CONAN_HOME/profiles/default"
      printf '[platform_requires]\n'
      printf '%s\n' ${SKEIN_CHECK_PACKAGES:-}
      printf '[conf]\ntools.cmake.cmaketoolchain:generator=Ninja\n'
    } >"$work/profile"
    options=()
    for part in xsimd onednn zlib nlohmann_json fmt; do
      case " ${SKEIN_CHECK_PACKAGES:-}" in
        *" $part/"*) ;;
        *) options+=(-o "skein/*:with_${part#nlohmann_}=False") ;;
      esac
    done
    copy_checkout "$work/recipe"
    options+=(-o "skein/*:header_only=$header_only")
    if [ "$header_only" = False ]; then
      options+=(-o "skein/*:march=native")
      sed -i "s/ skein::skein)/ $form)/" "$work/recipe/test_package/CMakeLists.txt"
    fi
    conan create "$work/recipe" --build=missing -pr:a "$work/profile" "${options[@]}"
    conan list 'skein/*:*'

    # What a remote has in place of the system's packages, by empty recipes of newer versions: they are found, a program sees their headers, and
    # Boost has MPI.
    for required in fmt/11.0.2 boost/1.83.0 openmpi/4.1.6; do
      name=${required%/*}
      mkdir -p "$work/required/$name"
      printf '%s\n' 'from conan import ConanFile' "class Required(ConanFile):" "    name, version, package_type = '$name', '${required#*/}', 'static-library'" \
        "    options, default_options = {'without_mpi': [True, False]}, {'without_mpi': True}" >"$work/required/$name/conanfile.py"
      conan create "$work/required/$name" -pr:a "$work/profile" >/dev/null 2>&1
    done
    sed '/^\[platform_requires\]/,/^\[conf\]/{/^\[conf\]/!d}' "$work/profile" >"$work/profile_of_remotes"
    alone=(-pr:a "$work/profile_of_remotes" -o "skein/*:header_only=$header_only")
    for part in xsimd onednn zlib json; do alone+=(-o "skein/*:with_$part=False"); done
    conan graph info --requires='skein/[*]' "${alone[@]}" -o 'skein/*:with_mpi=True' --format=json >"$work/graph.json"
    "$python" - "$work/graph.json" <<'END'
import json
import sys

nodes = json.load(open(sys.argv[1]))["graph"]["nodes"].values()
seen = {}
for node in nodes:
    if node["ref"] in (None, "", "conanfile"):
        seen = {d["ref"].split("/")[0]: d["headers"] for d in node["dependencies"].values()}
    if (node["ref"] or "").startswith("boost/") and node["options"]["without_mpi"] != "False":
        sys.exit("conan: with_mpi takes a Boost without MPI")
if not all(seen.get(name) for name in ("skein", "fmt", "boost", "openmpi")):
    sys.exit(f"conan: a program does not see the headers of what skein requires: {seen}")
END
    if [ "$header_only" = True ]; then
      conan build "$work/recipe" "${alone[@]}" >"$work/build.txt" 2>&1
      if ! grep -q 'in:  fmt 11.0.2' "$work/build.txt"; then
        echo "conan: the fmt that the recipe requires is not the one that CMake finds"
        grep ' fmt' "$work/build.txt"
        exit 1
      fi
    fi ;;

  *) echo "run.sh: what is '$way'?" >&2; exit 2 ;;
esac
