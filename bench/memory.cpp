// SPDX-License-Identifier: Apache-2.0
// How much memory does a training step take: weights, gradients, optimizer's state, activations and what kernels need beside
// them? Ours is all memory that the process has written to since before the training was made, after some steps; PyTorch's is the
// largest sum of its tensors within a step, by its own profiler, without what its libraries take beside them.
#include <malloc.h>

#include <fstream>
#include <limits>
#include <string>

#include "support/training.hpp"

namespace {
using namespace bench;

/// MiB of memory that the process has written to and that no file backs. What the heap counts is more: an array that begins at a
/// large page has addresses in front of it that nobody touches.
double written() {
  malloc_trim(0);
  std::ifstream maps("/proc/self/smaps_rollup");
  for (std::string word; maps >> word;)
    if (double kib = 0; word == "Anonymous:" && maps >> kib) return kib / 1024;
  return std::numeric_limits<double>::quiet_NaN();
}

template <class Network> bool measure(Report& report, const std::string& name, Goal must, Goal hope) {
  const Samples<Network, nn::CrossEntropy> samples(128);
  const sk::optim::Sgd sgd{.lr = 0.005f, .momentum = 0.9};
  const double before = written();
  Training<Network, nn::CrossEntropy> ours(samples, sgd, 1);
  for (int i = 0; i < 3; ++i) ours.step();
  Line l{.metric = name + ", batch 128, memory of a step", .ours = written() - before, .unit = "MiB", .must = must, .hope = hope};
  bool right = true;
  l.peer_name = "PyTorch (not at hand)";
  if (Peer::available()) {
    ours.reset();  // the weights that its first step begins with
    const Exchange exchange;
    const auto words = hand_over(exchange, samples, ours.model(), sgd);
    const std::vector<double> losses = ours.losses(20);
    const bool images = ModelOf<Network>::input::rank == 3;
    double least = 0;
    for (const bool channels_last : {false, true}) {
      if (channels_last && !images) continue;
      Peer peer("training.py", words, {.channels_last = channels_last});
      const std::string wrong = difference(losses, peer.losses(20));
      if (!wrong.empty()) l.accepted = right = false, l.add(wrong);
      const double theirs = std::stod(peer.ask("memory")) / (1 << 20);
      if (least == 0 || theirs < least) least = theirs, l.peer_name = "PyTorch, " + peer.name();
    }
    l.peer = least;
    l.ratio = Interval{*l.ours / least, *l.ours / least, *l.ours / least};
  }
  report.add(l);
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  Report report("memory", options(argc, argv));
  bool right = measure<LeNet>(report, "LeNet", {0.80}, {0.60});
  right &= measure<Mlp>(report, "784-512-512-10", {0.80}, {0.60});
  right &= measure<CifarResNet<20>>(report, "ResNet-20", {0.80}, {0.60});
  if (!report.quick()) right &= measure<CifarResNet<32>>(report, "ResNet-32", {0.80}, {0.60});
  return report.finish(right);
}
