#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/setup installs what apt has, and names what it does not know: apt itself installs nothing then.

The script runs among programs that stand for apt. Usage: setup_script.py <repository> | --self-test"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from stand_ins import program

APT = """if [ "$APT_LACKS_IT" = all ] && [ "$1" != update ]; then
  if [ "$1" = policy ]; then echo ' 100 /var/lib/dpkg/status'; exit 0; fi
  echo "E: Unable to locate package" >&2; exit 100
fi
for word in "$@"; do
  if [ "$word" = catch2 ] && [ "$APT_LACKS_IT" = yes ]; then echo "E: Unable to locate package catch2" >&2; exit 100; fi
done
if [ "$1" = install ]; then shift; echo "$*" >>"$APT_HAS_INSTALLED"; fi
"""


def call(script, unknown, *purpose):
    """What apt has installed, what was said, and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("apt-get", "apt-cache"):
            program(root / "bin" / name, APT)
        program(root / "bin/sudo", '"$@"\n')
        program(root / "bin/dpkg-query", "exit 1\n")
        environment = dict(os.environ, PATH=f"{root}/bin:{os.environ['PATH']}", APT_HAS_INSTALLED=str(root / "installed"),
                           APT_LACKS_IT=unknown)
        done = subprocess.run(["bash", str(script), *purpose], env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        installed = (root / "installed").read_text() if (root / "installed").exists() else ""
        return installed.split(), done.stdout + done.stderr, done.returncode


def check(repository):
    script, faults = repository / "scripts/setup", []
    installed, said, code = call(script, "no")
    if code != 0 or not {"catch2", "libfmt-dev"} <= set(installed):
        faults.append(f"scripts/setup installs {installed} where apt knows all, and ends with {code}: {said}")
    installed, said, code = call(script, "no", "bench")
    if code != 0 or "libgloo-dev" not in installed or "clang" in installed:
        faults.append(f"scripts/setup bench installs {installed}, and ends with {code}: {said}")
    installed, said, code = call(script, "yes")
    if code != 1 or "catch2" in installed or "libfmt-dev" not in installed:
        faults.append(f"scripts/setup installs {installed} where apt does not know catch2, and ends with {code}: {said}")
    if not re.search("^scripts/setup: apt does not know catch2 here", said, re.M):
        faults.append(f"scripts/setup does not name what apt does not know: {said}")
    installed, said, code = call(script, "all")
    if code != 1 or "apt has no package lists here (is there a network?)" not in said:
        faults.append(f"scripts/setup does not say that apt has no package lists, and ends with {code}: {said}")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        program(pathlib.Path(folder) / "scripts/setup", "apt-get install catch2 libfmt-dev\n")
        found = check(pathlib.Path(folder))
        return [] if len(found) == 4 else [f"wanted four faults of a script that asks apt once, found {found}"]


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "scripts/setup installs what apt has, and names the rest")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
