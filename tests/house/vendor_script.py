#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/vendor keeps what lies in its own folder though it is told to gather it from there, and names versions that skein does not take.

A copy of the script runs, that looks for no header of the system, among programs that stand for apt.
Usage: vendor_script.py <repository> | --self-test"""
import os
import pathlib
import subprocess
import sys
import tempfile

from stand_ins import program

SYSTEM = "/usr/include /usr/local/include /opt/homebrew/include"
HEADERS = {"fmt/format.h": "", "fmt/core.h": "#define FMT_VERSION 90100\n", "xsimd/xsimd.hpp": "", "catch2/catch.hpp": "", "nlohmann/json.hpp": ""}
UNPACK = 'mkdir -p "$3/usr/include/catch2"; : >"$3/usr/include/catch2/catch_all.hpp"\n'    # dpkg-deb -x PACKAGE FOLDER


def headers(folder, changed):
    for name, text in (HEADERS | changed).items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


def call(root, headers_in, to):
    environment = dict(os.environ, PATH=f"{root}/bin:{os.environ['PATH']}", CPATH=str(headers_in))
    done = subprocess.run(["bash", str(root / "scripts/vendor"), "--to", str(to)], env=environment, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def check(repository):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        text = (repository / "scripts/vendor").read_text()
        program(root / "scripts/vendor", text.replace(SYSTEM, "").removeprefix("#!/usr/bin/env bash\n"))
        program(root / "bin/apt-get", ': >"$3_3.4.deb"\n')
        program(root / "bin/dpkg-deb", UNPACK)
        code, said = call(root, headers(root / "own/include", {}), root / "own")
        if code != 0 or not all((root / "own/include" / name).exists() for name in HEADERS):
            faults.append(f"scripts/vendor deletes what it is to gather from its own folder, and ends with {code}: {said.strip()}")
        code, said = call(root, headers(root / "old", {"fmt/core.h": "#define FMT_VERSION 80101\n"}), root / "to_old")
        if code != 1 or "this fmt has version 8.1.1, and skein takes 9 or newer" not in said:
            faults.append(f"scripts/vendor takes fmt 8.1.1, and ends with {code}: {said.strip()}")
        code, said = call(root, headers(root / "new", {"catch2/catch.hpp": None}), root / "to_new")
        wanted = f"the Catch2 here has version 3, and the tests take 2.13: put its one header at {root}/to_new/include/catch2/catch.hpp"
        if code != 1 or wanted not in said or "could not be downloaded" in said:
            faults.append(f"scripts/vendor does not say of the Catch2 3 of apt that {wanted}, and ends with {code}: {said.strip()}")
        headers(root / "to_new/include", {})
        code, said = call(root, root / "new", root / "to_new")
        if code != 0:
            faults.append(f"scripts/vendor does not take the header that was put where it said, and ends with {code}: {said.strip()}")
        config = "xsimd/config/xsimd_config.hpp"
        code, said = call(root, headers(root / "xsimd 10", {config: "#define XSIMD_VERSION_MAJOR 10\n"}), root / "to_xsimd")
        if code != 1 or "this xsimd has version 10, and skein takes 8: put its headers below a folder that CPATH names" not in said:
            faults.append(f"scripts/vendor takes xsimd 10, or not from a folder with a space, and ends with {code}: {said.strip()}")
        headers(root / "xsimd 8", {name: None for name in HEADERS} | {"xsimd/xsimd.hpp": "", config: "#define XSIMD_VERSION_MAJOR 8\n"})
        code, said = call(root, f"{root}/xsimd 8:{root}/xsimd 10", root / "to_xsimd")
        if code != 0:
            faults.append(f"scripts/vendor does not take the xsimd that was put where it said, and ends with {code}: {said.strip()}")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        program(pathlib.Path(folder) / "scripts/vendor", 'rm -rf "$2"\nexit 2\n')
        found = check(pathlib.Path(folder))
        return [] if len(found) == 6 else [f"wanted six faults of a script that deletes, found {found}"]


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "scripts/vendor keeps its own folder, and names versions that are not taken")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
