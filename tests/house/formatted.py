#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format 14 leaves every source as it is. Another version formats otherwise, so without this one the test is skipped.

Usage: formatted.py SOURCE_DIR [ignored] | --self-test"""
import pathlib
import shutil
import subprocess
import sys

TOOL = "clang-format-14"
FOLDERS, KINDS, GENERATED = ("include", "src", "tests", "examples", "bench", "test_package"), (".hpp", ".ipp", ".cpp", ".cu", ".cuh"), "tests/fixtures"
AT_ONCE = 40


def formatted(folder, files):
    """The text of the files as clang-format leaves them, one after the other."""
    return subprocess.run([TOOL, *files], cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def unformatted(folder, files):
    """The files that it would change; several at once, since most are right and starting it is what takes long."""
    if formatted(folder, files) == "".join((folder / file).read_text() for file in files):
        return []
    if len(files) == 1:
        return files
    half = len(files) // 2
    return unformatted(folder, files[:half]) + unformatted(folder, files[half:])


def self_test():
    import tempfile
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / ".clang-format").write_text("BasedOnStyle: Google\n")
        (folder / "right.cpp").write_text("int f() { return 1; }\n")
        (folder / "wrong.cpp").write_text("int f(){return 1;}\n")
        found = unformatted(folder, ["right.cpp", "wrong.cpp", "right.cpp"])
    return [] if found == ["wrong.cpp"] else [f"found {found}, not wrong.cpp alone"]


def main():
    if not shutil.which(TOOL):
        print(f"no {TOOL} here: apt install {TOOL}")
        return 77
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "what is not formatted is found")
        return 1 if faults else 0
    root = pathlib.Path(sys.argv[1])
    files = [str(path.relative_to(root)) for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in KINDS]
    files = [file for file in files if not file.startswith(GENERATED)]
    wrong = [file for start in range(0, len(files), AT_ONCE) for file in unformatted(root, files[start:start + AT_ONCE])]
    for file in wrong:
        print(f"{file}: {TOOL} -i {file}")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
