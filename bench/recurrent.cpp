// SPDX-License-Identifier: Apache-2.0
// How long does a step of an LSTM take that reads digits row by row: 28 steps of 28 values, 128 values of state, batch 128,
// cross-entropy, SGD with momentum; on one thread, on two? The peer is torch.nn.LSTM.
#include "support/training.hpp"

int main(int argc, char** argv) {
  bench::Report report("recurrent", bench::options(argc, argv));
  const double rate = bench::gemm_rate(report.quick());
  report.say("a core's sgemm: " + bench::number(1e-9 * rate) + " GFLOP/s");
  const skein::optim::Sgd sgd{.lr = 0.01f, .momentum = 0.9};
  bool right = true;
  for (const int threads : {1, 2})
    right &= bench::measure_step<bench::LstmRows, skein::nn::CrossEntropy>(
        report, {.metric = "LSTM step, batch 128", .must = {0.60, 1.5}, .hope = {0.40}, .threads = threads}, 128, sgd, rate);
  return report.finish(right);
}
