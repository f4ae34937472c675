#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the build found (SKEIN_WITH_XSIMD and its like), and SKEIN_COMPILED, is asked for by value: defined() is true for 0 too. Only core/config.hpp gives
defaults, nothing is guessed from what headers lie about, and each switch that changes the library's functions is part of SKEIN_ABI's name.

Usage: switches.py SOURCE_DIR [ignored] | --self-test"""
import pathlib
import re
import shutil
import subprocess
import sys

IN_ABI = ("XSIMD", "ONEDNN", "ZLIB", "JSON")
BESIDE = ("CUDNN", "LAPACK", "IMAGES", "HDF5")             # what they bring is there or refused: no layout and no common function differs
SWITCHES = IN_ABI + BESIDE
DEFINED = re.compile(r"(?:defined\s*\(?\s*|#\s*ifn?def\s+)SKEIN_(?:COMPILED(?:_MPI)?|WITH_(?:%s))\b" % "|".join(SWITCHES))
GUESSED = re.compile(r"#\s*define\s+SKEIN_WITH_(?:%s)\b|__has_include\s*\(\s*<(?:zlib|xsimd/|dnnl|oneapi/|nlohmann/|cudnn|png|turbojpeg|hdf5|lapack)" % "|".join(SWITCHES))


def faults_in(text):
    """(line, what) of a file that is not core/config.hpp."""
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
        if DEFINED.search(line):
            faults.append((number, "asks whether a switch is defined, not for its value"))
        if GUESSED.search(line):
            faults.append((number, "guesses what the build has to say"))
    return faults


def abi(config, definitions):
    """The name that SKEIN_ABI has with these definitions."""
    command = [shutil.which("c++") or "g++", "-E", "-P", "-xc++", "-std=c++20", *(f"-D{d}" for d in definitions), "-"]
    done = subprocess.run(command, input=f'#include "{config}"\nSKEIN_ABI\n', stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()[-1]


def abi_faults(config):
    plain = abi(config, [])
    faults = []
    for switch in BESIDE:
        if abi(config, [f"SKEIN_WITH_{switch}=1"]) != plain:
            faults.append(f"SKEIN_ABI is not {plain} with SKEIN_WITH_{switch}")
    for switch in IN_ABI:
        name = f"SKEIN_WITH_{switch}"
        if abi(config, [name]) == plain or abi(config, [f"{name}=1"]) != abi(config, [name]):
            faults.append(f"SKEIN_ABI is {plain} with {name} and without")
        if abi(config, [f"{name}=0"]) != plain:
            faults.append(f"SKEIN_ABI with {name}=0 is not that without it")
    return faults


def self_test():
    wrong = ["#if defined(SKEIN_WITH_XSIMD)", "#ifdef SKEIN_WITH_ZLIB", "#if !defined SKEIN_WITH_JSON", "#ifndef SKEIN_COMPILED", "#define SKEIN_WITH_ZLIB 1", "#if __has_include(<zlib.h>)", "#if __has_include(<cudnn.h>)",
             "#define SKEIN_WITH_LAPACK 0"]
    right = ["#if SKEIN_WITH_XSIMD", "#if !SKEIN_COMPILED", "#elif !SKEIN_WITH_ZLIB", "#define SKEIN_WITH_NUMBER(op)", "#if __has_include(<boost/version.hpp>)"]
    return [f"{line}: {faults_in(line)}" for line in wrong if len(faults_in(line)) != 1] + [f"{line}: {faults_in(line)}" for line in right if faults_in(line)]


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "switches are judged")
        return 1 if faults else 0
    root = pathlib.Path(sys.argv[1])
    config = root / "include/skein/core/config.hpp"
    faults = abi_faults(config.resolve())
    for folder in ("include", "src", "tests", "examples", "bench", "test_package"):
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in (".hpp", ".ipp", ".cpp", ".cu", ".cuh") and p != config):
            taken_back = re.sub(r"^#undef (\w+)\n#define \1 0$", "", path.read_text(), flags=re.M) if "compile_fail" in path.parts else path.read_text()
            faults += [f"{path.relative_to(root)}:{line}: {what}" for line, what in faults_in(taken_back)]
    print("\n".join(faults) if faults else "switches are asked for by value")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
