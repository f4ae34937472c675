#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The folder of data sets that tests get is that of -DSKEIN_DATA_DIR, else that of the environment's SKEIN_DATA whenever CMake runs, else
../shared/data.

A project of its own includes cmake/SkeinDataFolder.cmake. Usage: data_folder.py <repository> | --self-test"""
import os
import pathlib
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(data LANGUAGES NONE)
include({module})
message(STATUS "the data are in <${{SKEIN_DATA_DIR}}>")
"""


def check(repository):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        (root / "sources").mkdir()
        (root / "sources/CMakeLists.txt").write_text(PROJECT.format(module=(repository / "cmake/SkeinDataFolder.cmake").resolve()))
        for at_hand, flags, data, wanted in ((False, [], "", ""), (False, [], "/first", "/first"), (False, [], "/second", "/second"),
                                             (True, [], "", f"{root}/shared/data"), (True, [], "/third", "/third"),
                                             (True, ["-DSKEIN_DATA_DIR=/own"], "/third", "/own"), (True, [], "/fourth", "/own")):
            if at_hand:
                (root / "shared/data").mkdir(parents=True, exist_ok=True)
            done = subprocess.run(["cmake", "-S", root / "sources", "-B", root / "build", *flags], env=dict(os.environ, SKEIN_DATA=data),
                                  capture_output=True, text=True, timeout=60)
            if f"the data are in <{wanted}>" not in done.stdout:
                faults.append(f"with SKEIN_DATA='{data}' and {flags} tests do not get '{wanted}': {done.stdout} {done.stderr}")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "cmake").mkdir()
        (pathlib.Path(folder) / "cmake/SkeinDataFolder.cmake").write_text('set(SKEIN_DATA_DIR "$ENV{SKEIN_DATA}" CACHE PATH "")\n')
        found = check(pathlib.Path(folder))
        return [] if len(found) == 4 else [f"wanted four faults of a folder that is kept, found {found}"]


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "tests get the data sets that were named last")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
