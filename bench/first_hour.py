#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first hour of a user: what he does before the first training is a good one. Each row is one function below."""
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
import report  # noqa: E402


class Bench:
    """What the rows share: the folder, the flags, the report."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.lines = report.Report("first_hour", options)
        self.compiling, self.linking = report.library()

    def build(self, name, *flags):
        """The program bench/support/first_hour/NAME.cpp, compiled as a user's release build."""
        source, program = report.ROOT / "bench" / "support" / "first_hour" / f"{name}.cpp", self.folder / name
        subprocess.run([self.options.compiler, "-std=c++20", "-O2", "-march=native", "-w", *self.compiling, *flags, str(source), "-o",
                        str(program), *self.linking], check=True)
        return program


def compiler_seconds(command):
    """The processor time of one command, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def debug_build(bench):
    """The first program, compiled and linked without optimisation: processor time of the compiler, the least of the runs."""
    source = report.ROOT / "examples" / "00_first_program.cpp"
    compiling, linking = report.library(mpi=True)
    command = [bench.options.compiler, "-std=c++20", "-g", *compiling, str(source), "-o", str(bench.folder / "first_program"), *linking]
    seconds = min(compiler_seconds(command) for _ in range(1 if bench.options.quick else 3))
    bench.lines.add("debug build of the first program", seconds, "s", 6, note="-g, header-only, processor time, linking included")


def agreement(bench):
    """What two ranks compare before the first step of fit: milliseconds, and collectives."""
    seconds, collectives = subprocess.run([str(bench.build("agree"))], check=True, capture_output=True, text=True).stdout.split()
    bench.lines.add("agreement of the ranks at the start of fit", 1e3 * float(seconds), "ms", 1, note="2 ranks that are threads")
    bench.lines.add("collectives of that agreement", float(collectives), "", 1)


ROWS = {"agreement": agreement, "debug_build": debug_build}


def main():
    parser = report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(ROWS), help="of " + ", ".join(ROWS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for row in options.rows.split(","):
            ROWS[row](bench)
        bench.lines.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
