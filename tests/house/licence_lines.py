#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file says its licence within its first three lines and is plain ASCII.

Usage: licence_lines.py <repository> | --self-test"""
import pathlib
import sys
import tempfile

FOLDERS = ("include", "src", "tests", "examples", "bench", "scripts", "cmake", "tools", "test_package", ".ci")
ENDINGS = {".hpp", ".ipp", ".cuh", ".cpp", ".cu", ".py", ".cmake", ".sh", ".txt"}
LINE = "SPDX-License-Identifier: Apache-2.0"


def sources(root):
    yield from (root / name for name in ("CMakeLists.txt", "conanfile.py") if (root / name).is_file())
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and "fixtures" not in file.parts:
                if file.suffix in ENDINGS - {".txt"} or file.name == "CMakeLists.txt":
                    yield file
                elif file.suffix == "" and folder in ("scripts", ".ci", "tools"):
                    yield file


def check(root):
    faults = []
    for file in sources(root):
        name, data = file.relative_to(root).as_posix(), file.read_bytes()
        lines = data.decode("utf-8", "replace").splitlines()
        if not any(LINE in line for line in lines[:3]):
            faults.append(f"{name}: no '{LINE}' in its first three lines")
        for number, line in enumerate(lines, 1):
            if not line.isascii():
                faults.append(f"{name}:{number}: not plain ASCII")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "include").mkdir()
        (root / "include/good.hpp").write_text(f"// {LINE}\n")
        (root / "include/bare.hpp").write_text("#pragma once\n")
        (root / "include/letters.hpp").write_text(f"// {LINE}\n// caf\u00e9\n")
        found = check(root)
        wanted = ["bare.hpp: no 'SPDX", "letters.hpp:2: not plain ASCII"]
        if len(found) == 2 and all(any(word in fault for fault in found) for word in wanted):
            return []
        return [f"wanted {wanted}, found {found}"]


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "every source says its licence")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
