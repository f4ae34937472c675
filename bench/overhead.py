#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions is a whole SGD step of Linear(8, 8), batch 8 (libtorch: 191,000)? Counted by valgrind as the difference
between two runs, so that it is exactly repeatable; built for AVX2 since valgrind 3.19 does not know AVX-512.

--check: exit status 1 where the must is missed (the test suite runs that)."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
import report  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent / "support" / "overhead_step.cpp"


def build(compiler, folder):
    compiling, linking = report.library()
    program = pathlib.Path(folder) / "overhead_step"
    subprocess.run([compiler, "-std=c++20", "-O3", "-g", "-mavx2", "-mfma", "-mno-avx512f", "-w", *compiling, str(SOURCE), "-o",
                    str(program), *linking], check=True)
    return program


def instructions(program, steps, folder):
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out.{steps}", str(program), str(steps)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"Collected : (\d+)", done.stdout)
    if done.returncode != 0 or not found:
        sys.exit("overhead: valgrind failed:\n" + done.stdout)
    return int(found.group(1))


def main():
    parser = report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--profile", action="store_true", help="print the functions that the instructions are in")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("overhead: valgrind is not installed (apt install valgrind): nothing is counted")
        return 77 if options.check else 0
    lines = report.Report("overhead", options)
    with tempfile.TemporaryDirectory() as folder:
        program = build(options.compiler, folder)
        few, many = 50, 150
        count = (instructions(program, many, folder) - instructions(program, few, folder)) / (many - few)
        right = lines.add("SGD step of Linear(8, 8), batch 8", count, "instructions", 4000, 1000,
                          "AVX2 build, callgrind; libtorch: 191,000")
        if options.profile:
            subprocess.run(["callgrind_annotate", "--threshold=95", f"{folder}/out.{many}"])
    lines.finish()
    return 1 if options.check and not right else 0


if __name__ == "__main__":
    sys.exit(main())
