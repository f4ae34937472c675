#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every script that takes --help prints its usage from any folder: one that reads itself by $0 after a cd does not find itself. Those that
write into the sources, read a commit or run tests refuse a word that they do not know, the demo a number of ranks that is none.

Usage: script_help.py <repository> | --self-test"""
import pathlib
import subprocess
import sys
import tempfile


WRONG = "no-such-word"
REFUSE = (("demo", "--ranks", "0"), ("demo", "--ranks", WRONG), ("docs", WRONG), ("lines", WRONG), ("setup", WRONG), ("test", "--" + WRONG),
          ("test", WRONG), ("vendor", WRONG))                # before they do anything


def call(file, *words):
    return subprocess.run(["bash", "./" + file.name, *words], cwd=file.parent, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def check(root):
    faults = []
    for name, *words in REFUSE:
        done = call(file, *words) if (file := root / "scripts" / name).exists() else None
        if done and (done.returncode != 2 or words[-1] not in done.stderr or done.stdout):
            faults.append(f"scripts/{name} {' '.join(words)} ends with {done.returncode}: {(done.stderr + done.stdout).strip()}")
    for file in sorted((root / "scripts").iterdir()):
        if not file.is_file() or "--help)" not in file.read_text():
            continue
        done = call(file, "--help")
        if done.returncode != 0 or file.name not in done.stdout or done.stderr:
            faults.append(f"scripts/{file.name} --help, called in its folder, ends with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "scripts").mkdir()
        (root / "scripts/good").write_text("# Usage: scripts/good\ncd ..\ncase $1 in --help) sed -n 1p scripts/good ;; esac\n")
        (root / "scripts/lost").write_text("# Usage: scripts/lost\ncd ..\ncase $1 in --help) sed -n 1p \"$0\" ;; esac\n")
        (root / "scripts/lines").write_text("echo all of it\n")
        found = check(root)
        wanted = ["scripts/lines no-such-word", "scripts/lost --help"]
        return [] if [fault.split(",")[0].split(" ends")[0] for fault in found] == wanted else [f"wanted faults of {wanted}, found {found}"]


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "every script prints its usage from any folder")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
