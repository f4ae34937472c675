// SPDX-License-Identifier: Apache-2.0
// How long does a step of a ResNet for CIFAR-10 take (batch 128, 32 x 32 x 3, SGD with momentum), on one thread, on two? The peer
// is PyTorch, channels-last and not, the faster of them; with --quick channels-last alone, which measured faster. --quick leaves
// out ResNet-32, which --quick --only resnet_32 has.
#include "support/training.hpp"

namespace {
template <int Depth> bool measure(bench::Report& report, double rate) {
  bool right = true;
  for (const int threads : {1, 2})
    right &= bench::measure_step<bench::CifarResNet<Depth>, skein::nn::CrossEntropy>(
        report,
        {.metric = "ResNet-" + std::to_string(Depth) + " step, batch 128",
         .must = {0.80, 1.30},
         .hope = {0.60},
         .threads = threads},
        128, {.lr = 0.005f, .momentum = 0.9}, rate, true, 0);
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  bench::Report report("resnet", bench::options(argc, argv), {"resnet_20", "resnet_32"});
  const double rate = bench::gemm_rate(report.quick());
  report.say("a core's sgemm: " + bench::number(1e-9 * rate) + " GFLOP/s");
  report.say(skein::summary<bench::ModelOf<bench::CifarResNet<20>>>());
  bool right = true;
  if (report.wants("resnet_20")) right &= measure<20>(report, rate);
  if (report.wants("resnet_32") && report.whole()) right &= measure<32>(report, rate);
  return report.finish(right);
}
