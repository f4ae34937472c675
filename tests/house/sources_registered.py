#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every .cpp file below tests/ is compiled by something: a source that no program lists is a test that never runs.

Usage: sources_registered.py <repository> <file of registered sources> | --self-test"""
import pathlib
import sys
import tempfile

# Not tests themselves: the harness, programs that another test starts, and those of the consumers.
APART = ("support/", "house/harness/", "house/dead_rank/", "house/checked/", "house/macros/", "house/main/", "consumer/")


def check(tests, registered):
    known = {pathlib.Path(line).resolve() for line in registered if line.strip()}
    return [f"tests/{file.relative_to(tests).as_posix()} is in no test program: which folder of tests/CMakeLists.txt is it for?"
            for file in sorted([*tests.rglob("*.cpp"), *tests.rglob("*.cu")])
            if file.resolve() not in known and not file.relative_to(tests).as_posix().startswith(APART)]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        tests = pathlib.Path(folder)
        (tests / "nn").mkdir()
        (tests / "support").mkdir()
        for name in ("nn/linear_test.cpp", "nn/lost_test.cpp", "support/main.cpp"):
            (tests / name).write_text("")
        found = check(tests, [str(tests / "nn/linear_test.cpp")])
        if len(found) == 1 and "tests/nn/lost_test.cpp is in no test program" in found[0]:
            return []
        return [f"the lost source was not found, but: {found}"]


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
    else:
        faults = check(pathlib.Path(sys.argv[1]) / "tests", pathlib.Path(sys.argv[2]).read_text().splitlines())
    print("\n".join(faults) if faults else "every test source is registered")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
