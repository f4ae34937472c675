// SPDX-License-Identifier: Apache-2.0
// How long does a LeNet-5 step take on a GPU (batch 128, SGD with momentum), against PyTorch eager and with CUDA graphs?
#include "support/gpu_training.hpp"

int main(int argc, char** argv) {
  using namespace bench;
  need_gpu(argv[0]);
  Report report("cuda/lenet", options(argc, argv));
  const sk::optim::Sgd sgd{.lr = 0.05f, .momentum = 0.9};
  bool right =
      measure_gpu_step<LeNet, nn::CrossEntropy>(report, "LeNet step, batch 128, fp32", 128, sgd, {0.40}, {0.15}, {0.90}, {0.50});
  right &= measure_gpu_step<LeNet, nn::CrossEntropy, sk::precision::tf32>(report, "LeNet step, batch 128, tf32", 128, sgd, {0.40},
                                                                          {0.15}, {0.90}, {0.50}, "tf32", 2e-2);
  report.say("what the libraries chose:\n" + sk::cuda::choices().text());
  return report.finish(right);
}
