#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first hour of a user: what he does before the first training is a good one. Each row is one function below."""
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from json import loads

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
import report  # noqa: E402


class Bench:
    """What the rows share: the folder, the flags, the report."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.lines = report.Report("first_hour", options)
        self.compiling, self.linking = report.library()

    def build(self, name, source=None):
        """The program bench/support/first_hour/NAME.cpp, or another, compiled as a user's release build."""
        source, program = source or report.ROOT / "bench" / "support" / "first_hour" / f"{name}.cpp", self.folder / name
        subprocess.run([self.options.compiler, "-std=c++20", "-O2", "-march=native", "-w", *self.compiling, f"-I{report.ROOT / 'bench'}",
                        str(source), "-o", str(program), *self.linking], check=True)
        return program

    def output(self, program, json=False):
        """What a program of ours prints; or the objects that it writes to --json FILE."""
        file = self.folder / "lines.json"
        quick = ["--quick"] * self.options.quick
        done = subprocess.run([str(program), *quick, *(["--json", str(file)] if json else [])], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0 and not json:
            sys.exit(f"first_hour: {program.name} failed")
        return [loads(line) for line in file.read_text().splitlines()] if json else done.stdout


def compiler_seconds(command):
    """The processor time of one command, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def debug_build(bench):
    """The first program, compiled without optimisation: processor time of the compiler, the least of the runs. The must is for the
    form that the README recommends for it, skein::compiled_mpi beside skein::headers_precompiled, after an edit of the program."""
    source, compiling = report.ROOT / "examples" / "00_first_program.cpp", report.library(mpi=True)[0]
    header = bench.folder / "cmake_pch.hxx"
    header.write_text("#include <skein/skein.hpp>\n#include <skein/mpi.hpp>\n")
    library = ["-DSKEIN_COMPILED=1", "-DSKEIN_COMPILED_MPI=1"]

    def seconds(*flags):
        command = [bench.options.compiler, "-std=c++20", "-g", "-w", *compiling, *flags]
        return min(compiler_seconds(command) for _ in range(1 if bench.options.quick else 3))
    program = ["-c", str(source), "-o", str(bench.folder / "first_program.o")]
    once = seconds(*library, "-x", "c++-header", str(header), "-o", str(header) + ".gch")
    bench.lines.add("debug build of the first program", seconds(*library, "-include", str(header), *program), "s", 6,
                    note=f"-g, skein::compiled_mpi, headers precompiled: once a target {once:.1f} s")
    bench.lines.add("the same, headers not precompiled", seconds(*library, *program), "s")
    bench.lines.add("the same, header-only", seconds(*program), "s")


def prefetch(bench):
    """Two prefetch threads against one: the first line of bench/prefetch.cpp."""
    fields = bench.output(bench.build("prefetch", source=report.ROOT / "bench" / "prefetch.cpp"), json=True)[0]
    bench.lines.compare("images from a disk, one prefetch thread over two", fields["peer"], fields["ours"], "ms",
                        (fields["ratio"], fields["low"], fields["high"]), "two threads", at_least=1.7,
                        note="two cores to spare" if len(os.sched_getaffinity(0)) > 1 else "no second core: void")


def nan_guard(bench):
    """A LeNet step of Trainer::fit that looks whether the loss is a number, against one that does not."""
    step, median, low, high, *control = (float(field) for field in bench.output(bench.build("nan_guard")).split())
    bench.lines.compare("a LeNet step that looks for a loss of NaN", step, step / median, "ms", (median, low, high), ".on_nan = go_on",
                        1.005, note="1 thread, batch 128; go_on against itself {:.4f} ({:.4f} to {:.4f})".format(*control))


def agreement(bench):
    """What two ranks compare before the first step of fit: milliseconds, and collectives."""
    seconds, collectives = subprocess.run([str(bench.build("agree"))], check=True, capture_output=True, text=True).stdout.split()
    bench.lines.add("agreement of the ranks at the start of fit", 1e3 * float(seconds), "ms", 1, note="2 ranks that are threads")
    bench.lines.add("collectives of that agreement", float(collectives), "", 1)


def write_table(path, rows):
    """A table of about 97 bytes a row: numbers of several lengths, some missing, and two columns of categories."""
    draw = random.Random(1)
    towns, answers = ("Berlin", "Hamburg", "Munich", "Cologne", "Frankfurt", "Stuttgart", "Leipzig", "Dresden"), ("yes", "no", "unknown")
    lines = []
    for i in range(10000):
        area, age = draw.gauss(100, 30), "" if draw.random() < 0.03 else f"{draw.gauss(40, 12):.3f}"
        lines.append(f",{draw.gauss(0, 1):.6f},{draw.gauss(0, 1):.6f},{draw.gauss(0, 1):.4f},{age},{draw.gauss(0, 1):.8g},{area:.5f},"
                     f"{draw.randrange(1000)},{draw.randrange(1000)},{draw.randrange(10)},{draw.choice(towns)},{draw.choice(answers)},"
                     f"{3000 * area:.2f}\n")
    with open(path, "w") as file:
        file.write("id,a,b,c,age,d,area,k,l,m,town,answer,price\n")
        for i in range(0, rows, len(lines)):
            file.write("".join(str(i + j) + line for j, line in enumerate(lines[:rows - i])))


def csv(bench):
    """A CSV file of 100 MB, from the cache of the system: in turns with pandas, each in a process of its own."""
    python, path = os.environ.get("SKEIN_PEER_PYTHON") or sys.executable, bench.folder / "table.csv"
    write_table(path, 1_150_000)
    megabytes, program = path.stat().st_size / 2**20, bench.build("csv")

    def run(*command):
        output = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True).stdout
        return [float(field) for field in output.split()]
    threads = len(os.sched_getaffinity(0))
    peer = subprocess.run([python, "-c", "import pandas; print(pandas.__version__)"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    ours, theirs, one = [], [], []
    for _ in range(3 if bench.options.quick else 11):
        ours.append(run(program, path, threads))
        one.append(run(program, path, 1))
        if peer.returncode == 0:
            theirs.append(run(python, report.ROOT / "bench" / "peer" / "first_hour.py", path))
            if ours[-1][3] != theirs[-1][3] or ours[-1][5] != theirs[-1][5] or abs(ours[-1][4] / theirs[-1][4] - 1) > 1e-9:
                sys.exit("first_hour: pandas has read another table")
    note = f"{megabytes:.0f} MB, {threads} threads"
    seconds = statistics.median(r[0] for r in ours)
    if theirs:
        ratios = sorted(a[0] / b[0] for a, b in zip(ours, theirs))
        bench.lines.compare("CSV of 100 MB", seconds, statistics.median(r[0] for r in theirs), "s",
                            (statistics.median(ratios), ratios[0], ratios[-1]), "pandas " + peer.stdout.strip(), 1.0,
                            note + ", least and greatest of the pairs")
        cores = sorted(a[1] / b[1] for a, b in zip(one, theirs))
        bench.lines.compare("the same, processor time, 1 thread", statistics.median(r[1] for r in one),
                            statistics.median(r[1] for r in theirs), "s", (statistics.median(cores), cores[0], cores[-1]), "pandas")
    else:
        bench.lines.add("CSV of 100 MB", seconds, "s", note=note + ", no pandas here")
    bench.lines.add("the same, peak memory over the file", max(r[2] for r in ours) / megabytes, "times", 3)


def auc(bench):
    """AUC of 10^6 samples."""
    seconds, value = (float(field) for field in subprocess.run([str(bench.build("auc"))], check=True, stdout=subprocess.PIPE,
                                                               text=True).stdout.split())
    if abs(value - 0.7602) > 0.002:
        sys.exit(f"first_hour: the AUC of two normal scores one deviation apart is 0.7602, not {value}")
    bench.lines.add("AUC of 10^6 samples", seconds, "s", 0.2, note="1 thread, the least of 5")


ROWS = {"csv": csv, "auc": auc, "agreement": agreement, "debug_build": debug_build, "prefetch": prefetch, "nan_guard": nan_guard}


def main():
    parser = report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(ROWS), help="of " + ", ".join(ROWS))
    options = parser.parse_args()
    rows = options.rows.split(",")
    unknown = [row for row in rows if row not in ROWS]
    if unknown:
        parser.error(f"there is no row '{unknown[0]}'; --rows takes some of {', '.join(ROWS)}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for row in rows:
            ROWS[row](bench)
        bench.lines.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
