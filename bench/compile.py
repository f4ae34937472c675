#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does a user's compiler pay: time and peak memory of 03_mnist_data_parallel (with MPI's headers) and of the umbrella header
alone, each header-only and in the form that is linked to skein::compiled; growth from 10 to 100 equal layers; and the program: its
size, and the time from process start to the end of the first step. Times are processor time of the compiler, the least of several runs: other jobs then hardly matter."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
import report  # noqa: E402
from compiler import Compiler  # noqa: E402

EQUAL_LAYERS = """#include <skein/skein.hpp>
namespace sk = skein;
struct Net : sk::nn::Sequential<{layers}> {{}};
int main() {{
  sk::Model<Net, sk::Shape<32>> model{{sk::Seed{{1}}}};
  sk::Trainer trainer{{model, sk::nn::Mse{{}}, sk::optim::Sgd{{.lr = 0.1f}}}};
  sk::Arena<float> x(32);
  sk::data::Batch<float> batch;
  batch.x = batch.targets = x.data();
  batch.pitch = batch.target_pitch = batch.target_length = 32;
  batch.count = batch.global_count = 1;
  trainer.train_step().reserve({{.capacity = 1}});
  trainer.train_step().step(batch);
}}
"""


def least_seconds(command, runs, environment):
    """From before the process is made to its end."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    options = report.arguments(__doc__.splitlines()[0]).parse_args()
    lines = report.Report("compile", options)
    compiler = Compiler(options.compiler, options.quick)
    compiling, linking = report.library()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        with_mpi, link_mpi = report.library(mpi=True)
        example = report.ROOT / "examples" / "03_mnist_data_parallel.cpp"
        seconds, memory = compiler.compile(example, folder / "example.o", with_mpi + ["-c"])
        lines.add("03_mnist_data_parallel with MPI", seconds, "s", 13, 7, f"{options.compiler} -O2 -march=native, processor time")
        lines.add("the same, peak memory", memory, "MB", 700, 450)
        form = ["-DSKEIN_COMPILED=1", "-DSKEIN_COMPILED_MPI=1"]
        seconds, _ = compiler.compile(example, folder / "linked.o", with_mpi + form + ["-c"])
        lines.add("the same, for skein::compiled_mpi", seconds, "s", 7, 5)

        umbrella = folder / "umbrella.cpp"
        umbrella.write_text("#include <skein/skein.hpp>\nint main() {}\n")
        seconds, memory = compiler.compile(umbrella, folder / "umbrella.o", compiling + ["-c"])
        lines.add("umbrella header alone", seconds, "s", 3, 1.5)
        lines.add("the same, peak memory", memory, "MB", 700, 450)
        seconds, _ = compiler.compile(umbrella, folder / "umbrella_linked.o", compiling + form + ["-c"])
        lines.add("the same, for skein::compiled", seconds, "s", 2.5, 1.5)

        figures = {}
        for count in (10, 100):
            source = folder / f"layers{count}.cpp"
            source.write_text(EQUAL_LAYERS.format(layers=", ".join(["sk::nn::Linear<32>"] * count)))
            figures[count] = compiler.compile(source, folder / f"layers{count}.o", compiling + ["-c"])
        lines.add("growth from 10 to 100 equal layers, time", figures[100][0] / figures[10][0], "times", 1.5, 1.1,
                  f"{figures[10][0]:.2f} to {figures[100][0]:.2f} s")
        lines.add("growth from 10 to 100 equal layers, memory", figures[100][1] / figures[10][1], "times", 1.5, 1.1,
                  f"{figures[10][1]:.0f} to {figures[100][1]:.0f} MB")

        program = folder / "first_step"
        compiler.runs = 1
        compiler.compile(report.ROOT / "bench" / "support" / "first_step.cpp", program, compiling + linking + ["-s"])
        nothing = folder / "nothing"
        compiler.compile(umbrella, nothing, compiling + linking + ["-s"])
        environment = dict(os.environ, SKEIN_THREADS="2")
        runs = 10 if options.quick else 40
        first, empty = (1e3 * least_seconds([str(p)], runs, environment) for p in (program, nothing))
        lines.add("process start to the end of the first LeNet step", first, "ms", 50, 15,
                  f"without MPI, the process's end included; an empty program: {empty:.1f} ms")
        lines.add("size of that program", program.stat().st_size / 1e6, "MB", 1, 0.3, "stripped, dynamically linked")
        example = folder / "example"
        subprocess.run([options.compiler, "-s", str(folder / "example.o"), "-o", str(example), *link_mpi], check=True)
        lines.add("size of 03_mnist_data_parallel", example.stat().st_size / 1e6, "MB", 1, 0.3, "stripped, dynamically linked")
    lines.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
