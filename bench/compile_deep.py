#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does a user's compiler pay for deep networks: training programs of ResNet-20, ResNet-152 and ResNet-152 V2, time and peak memory.
Blocks are compiled once (Repeat), so that what counts is how many layers differ, not how many there are. Times are processor time of the
compiler, the least of several runs."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
import report  # noqa: E402
from compiler import Compiler  # noqa: E402

TRAINING = """#include <skein/skein.hpp>
namespace sk = skein;
using Net = sk::models::{network};
int main() {{
  sk::Model<Net, Net::input> model{{sk::Seed{{1}}}};
  sk::Trainer trainer{{model, sk::nn::CrossEntropy{{}}, sk::optim::Sgd{{.lr = 0.1f, .momentum = 0.9f}}}};
  sk::Arena<float> x(static_cast<std::size_t>(sk::sample_pitch(Net::input::extents)));
  const std::int32_t label = 1;
  sk::data::Batch<float> batch;
  batch.x = x.data();
  batch.pitch = sk::sample_pitch(Net::input::extents);
  batch.sample = Net::input::extents;
  batch.labels = &label;
  batch.count = batch.global_count = 1;
  trainer.train_step().reserve({{.capacity = 1}});
  trainer.train_step().step(batch);
}}
"""


def main():
    options = report.arguments(__doc__.splitlines()[0]).parse_args()
    lines = report.Report("compile_deep", options)
    compiler = Compiler(options.compiler, options.quick)
    compiling, _ = report.library()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for title, network, goals in (("ResNet-20 for CIFAR", "CifarResNet<20>", (15, 8)), ("ResNet-152", "ResNet<152>", (30, 12)),
                                      ("ResNet-152 V2", "ResNetV2<152>", (30, 12))):
            source = folder / "training.cpp"
            source.write_text(TRAINING.format(network=network))
            seconds, memory = compiler.compile(source, folder / "training.o", compiling + ["-c"])
            lines.add(f"training program of {title}", seconds, "s", *goals, f"{options.compiler} -O2 -march=native, processor time")
            lines.add("the same, peak memory", memory, "MB", 1200, 600)
    lines.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
