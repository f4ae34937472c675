// SPDX-License-Identifier: Apache-2.0
// How long does a step of a plain MLP take: 784-512-512-10, batch 128, cross-entropy, SGD with momentum; on one thread, on two?
#include "support/training.hpp"

int main(int argc, char** argv) {
  bench::Report report("mlp", bench::options(argc, argv));
  const double rate = bench::gemm_rate(report.quick());
  report.say("a core's sgemm: " + bench::number(1e-9 * rate) + " GFLOP/s");
  const skein::optim::Sgd sgd{.lr = 0.01f, .momentum = 0.9};
  bool right = bench::measure_step<bench::Mlp, skein::nn::CrossEntropy>(
      report, {.metric = "step, batch 128", .must = {0.90, 1.2}, .hope = {0.82}, .threads = 1}, 128, sgd, rate);
  right &= bench::measure_step<bench::Mlp, skein::nn::CrossEntropy>(
      report, {.metric = "step, batch 128", .must = {0.90, 1.3}, .hope = {0.75}, .threads = 2}, 128, sgd, rate);
  return report.finish(right);
}
