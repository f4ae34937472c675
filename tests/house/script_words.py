#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts do what all of their words say, wherever these stand: none is dropped, and nobody is told that tests passed that were only listed.

The scripts run in a copy, among programs that stand for CMake, ctest, mpirun and scripts/cuda.sh.
Usage: script_words.py <repository> | --self-test"""
import os
import pathlib
import subprocess
import sys
import tempfile

from stand_ins import copy_scripts, program

SCRIPTS = ["bench", "demo", "test", "paths.sh", "ranks.sh"]
CASES = [                                                        # script and words, end status, what it says, what it does not
    ("bench gemm --quick --cuda", 0, "cuda.sh: bench gemm --quick", "--cuda"),
    ("bench --cuda gemm", 0, "cuda.sh: bench gemm", "--cuda"),
    ("demo --ranks=4 --epochs 3", 0, "demo: 4 ranks", "--ranks"),
    ("demo --ranks=none", 2, "--ranks takes a whole number from 1, not 'none'", "building"),
    ("test --cuda 90 --limit 60", 0, "cuda.sh: all 90 --limit 60", "--cuda"),
    ("test --limit 60 --cuda", 0, "cuda.sh: all --limit 60", "--cuda"),
    ("test --all --cuda 90", 2, "scripts/test --all by itself", "cuda.sh:"),
    ("test -N", 0, "no test was run", "all passed"),
    ("test --show-only=json-v1 -R a", 0, "no test was run", "all passed"),
    ("test --all -N", 0, "no test was run", "all passed"),
    ("test -R a", 0, "all passed", "no test was run"),
]


def check(repository):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        copy_scripts(repository, root, SCRIPTS)
        program(root / "scripts/setup", "exit 0\n")
        program(root / "scripts/cuda.sh", 'echo "cuda.sh: $*"\n')
        program(root / "bin/cmake", "exit 0\n")
        program(root / "bin/ctest", 'if [ "$1" = --help ]; then echo " -R <regex>"; fi\necho "100% tests passed, 0 tests failed out of 1"\n')
        program(root / "bin/mpirun", 'while [ "$1" != -n ]; do shift; done; shift 2; exec "$@"\n')
        program(root / "build/demo/examples/03_mnist_data_parallel", 'echo "$@"\n')
        environment = dict(os.environ, PATH=f"{root}/bin:{os.environ['PATH']}")
        environment.pop("CI", None)
        for words, status, says, silent in CASES:
            name, *arguments = words.split()
            done = subprocess.run(["bash", str(root / "scripts" / name), *arguments], env=environment, capture_output=True, text=True,
                                  timeout=60, stdin=subprocess.DEVNULL)
            said = done.stdout + done.stderr
            if done.returncode != status or says not in said or silent in said:
                faults.append(f"scripts/{words} ends with {done.returncode}, wanted {status} and '{says}': {said.strip()}")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        for name in SCRIPTS:
            program(pathlib.Path(folder) / "scripts" / name, 'echo "cuda.sh: all 90 --limit 60"\n')
        found = check(pathlib.Path(folder))
        return [] if len(found) == len(CASES) - 1 else [f"wanted a fault of all cases but one, found {found}"]


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "scripts do what their words say")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
