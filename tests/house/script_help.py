#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every script that takes --help prints its usage from any folder: one that reads itself by $0 after a cd does not find itself.

Usage: script_help.py <repository> | --self-test"""
import pathlib
import subprocess
import sys
import tempfile


def check(root):
    faults = []
    for file in sorted((root / "scripts").iterdir()):
        if not file.is_file() or "--help)" not in file.read_text():
            continue
        done = subprocess.run(["bash", "./" + file.name, "--help"], cwd=file.parent, capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0 or file.name not in done.stdout or done.stderr:
            faults.append(f"scripts/{file.name} --help, called in its folder, ends with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "scripts").mkdir()
        (root / "scripts/good").write_text("# Usage: scripts/good\ncd ..\ncase $1 in --help) sed -n 1p scripts/good ;; esac\n")
        (root / "scripts/lost").write_text("# Usage: scripts/lost\ncd ..\ncase $1 in --help) sed -n 1p \"$0\" ;; esac\n")
        found = check(root)
        return [] if len(found) == 1 and found[0].startswith("scripts/lost --help") else [f"wanted a fault of scripts/lost, found {found}"]


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "every script prints its usage from any folder")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
