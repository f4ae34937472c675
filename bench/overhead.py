#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions is a whole SGD step of Linear(8, 8), batch 8 (libtorch: 191,000)? Counted by valgrind as the difference
between two runs, so that it is exactly repeatable; built for AVX2 since valgrind 3.19 does not know AVX-512. What guards the step
(denormals are flushed, barriers can be cancelled) is counted by itself, by the lines of source that the instructions belong to.

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


# What guards a step: the header, and what the lines have to contain (None: all of them).
GUARDS = {"flushing denormals": ("core/denormals.hpp", None), "cancellable barriers": ("core/workers.hpp", "arrive_and_wait"),
          "comparing the batch": ("nn/check_batch.hpp", None),
          "finite losses, before the update": ("train/step/update.hpp", "finite"), "and after it": ("train/train_step.hpp", "left_out")}


def instructions(program, steps, folder):
    """All instructions of a run, and those of each guard."""
    out = pathlib.Path(folder) / f"out.{steps}"
    command = ["valgrind", "--tool=callgrind", "--compress-pos=no", f"--callgrind-out-file={out}", str(program), str(steps)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"Collected : (\d+)", done.stdout)
    if done.returncode != 0 or not found:
        sys.exit("overhead: valgrind failed:\n" + done.stdout)
    guards, names, source, of_a_call = dict.fromkeys(GUARDS, 0), {}, "", False
    guarded = {}                                                 # source file -> [(guard, its lines or None)]
    for line in out.read_text().splitlines():
        here = re.match(r"f[lie]=\((\d+)\)(?: (.*))?", line)    # whose costs follow; its name at the first time
        cost = re.match(r"(\d+) (\d+)$", line)
        if here:
            source = names.setdefault(here.group(1), here.group(2))
            if source not in guarded:
                guarded[source] = [(name, lines_with(source, words)) for name, (header, words) in GUARDS.items()
                                   if source.endswith(header)]
        elif cost and not of_a_call:                             # the line after calls= is what the callee took
            for name, lines in guarded.get(source, ()):
                if lines is None or int(cost.group(1)) in lines:
                    guards[name] += int(cost.group(2))
        elif cf := re.match(r"cf[il]=\((\d+)\) (.*)", line):
            names.setdefault(cf.group(1), cf.group(2))
        of_a_call = line.startswith("calls=")
    return int(found.group(1)), guards


def lines_with(source, words):
    return None if words is None else {n for n, line in enumerate(open(source), 1) if words in line}


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
        (all_few, guards_few), (all_many, guards_many) = (instructions(program, steps, folder) for steps in (few, many))
        count = round((all_many - all_few) / (many - few))       # the processes themselves differ by a few instructions
        guards = {name: (guards_many[name] - guards_few[name]) / (many - few) for name in GUARDS}
        said = ", ".join(f"{name} {n:.0f}" for name, n in guards.items())
        right = lines.add("SGD step of Linear(8, 8), batch 8", count, "instructions", 1750, 1000,
                          f"AVX2 build, callgrind; of these {said}; libtorch: 191,000")
        right &= lines.add("SGD step of Linear(8, 8), batch 8, without its guards", count - sum(guards.values()), "instructions",
                           1600, None, f"without {said}")
        right &= all(guards.values())                            # a guard of which nothing is found has moved: mend GUARDS
        if options.profile:
            subprocess.run(["callgrind_annotate", "--threshold=95", f"{folder}/out.{many}"])
    lines.finish()
    return 1 if options.check and not right else 0


if __name__ == "__main__":
    sys.exit(main())
