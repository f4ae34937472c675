#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the library is compiled in the gate: the function objects (structs with a call operator) of the headers in folders named
cuda/, against the kernels that nvcc has made in a program of tests.

Usage: kernels.py SOURCE_DIR PROGRAM | --self-test"""
import pathlib
import re
import subprocess
import sys

CALL = re.compile(r"operator\(\)\((?:int step, )?long\b")                      # over an index, a row or a block
START = re.compile(r"^(?:template <[^\n]*> )?(?:struct|class) (\w+)[^;{}()]*\{", re.M)          # of a namespace: what stands within a struct is indented

ONLY_ON_THE_HOST = {"BlockOfThreads", "OutOfOrder"}                            # how blocks and indices run where there is no GPU


def function_objects(text):
    """The structs of a header that can be launched, by name."""
    text = re.sub(r"//[^\n]*", "", text)
    starts = list(START.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return {start.group(1) for start, end in zip(starts, ends) if CALL.search(text[start.end():end])}


def absent(names, symbols):
    """The names that no stub of a kernel holds; in a symbol a name stands behind its length."""
    stubs = "\n".join(symbol for symbol in symbols.splitlines() if "__device_stub__" in symbol)
    return sorted(name for name in names if f"{len(name)}{name}" not in stubs)


def self_test():
    text = "template <class T> struct Fill {\n  void operator()(long i) const;\n};\nstruct Sum {\n  float operator()(float a, float b) const;\n};\n// struct No { operator() };\nstruct Gone;\n"
    faults = []
    if function_objects(text) != {"Fill"}:
        faults.append(f"found {function_objects(text)}, not Fill alone")
    symbols = "000 t _Z22__device_stub__each4FillIfE\n000 t _Z5other4Copy\n"
    if absent({"Fill", "Copy"}, symbols) != ["Copy"]:
        faults.append(f"absent: {absent({'Fill', 'Copy'}, symbols)}, not Copy alone")
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "kernels are found")
        return 1 if faults else 0
    include, program = pathlib.Path(sys.argv[1]) / "include/skein", sys.argv[2]
    where = {}
    for header in sorted(include.rglob("cuda/*.hpp")):
        for name in function_objects(header.read_text()) - ONLY_ON_THE_HOST:
            where[name] = header.relative_to(include.parent)
    symbols = subprocess.run(["nm", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    missing = absent(where, symbols)
    for name in missing:
        print(f"{where[name]}: no kernel of {name} is in {program}; give tests/cuda.cmake a test that launches it")
    print(f"{len(where)} function objects, {len(missing)} of them not compiled")
    return 1 if missing or len(where) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
