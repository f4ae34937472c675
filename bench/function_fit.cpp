// SPDX-License-Identifier: Apache-2.0
// How long does a step of the tutorial's regression take: 1-80-80-40-1, batch 1000, squared error, SGD; on one thread, on two?
#include "support/training.hpp"

int main(int argc, char** argv) {
  bench::Report report("function_fit", bench::options(argc, argv));
  const double rate = bench::gemm_rate(report.quick());
  report.say("a core's sgemm: " + bench::number(1e-9 * rate) + " GFLOP/s");
  const skein::optim::Sgd sgd{.lr = 0.01f};
  bool right = bench::measure_step<bench::FunctionFit, skein::nn::Mse>(
      report, {.metric = "step, batch 1000", .must = {0.55, 1.2}, .hope = {0.48}, .threads = 1}, 1000, sgd, rate);
  right &= bench::measure_step<bench::FunctionFit, skein::nn::Mse>(
      report, {.metric = "step, batch 1000", .must = {0.40, 1.3}, .hope = {0.33}, .threads = 2}, 1000, sgd, rate);
  return report.finish(right);
}
