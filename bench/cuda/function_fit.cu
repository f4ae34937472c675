// SPDX-License-Identifier: Apache-2.0
// How long does a step of the demo network take on a GPU (1-80-80-40-1, batch 1000, SGD), against PyTorch eager and with CUDA
// graphs?
#include "support/gpu_training.hpp"

int main(int argc, char** argv) {
  using namespace bench;
  need_gpu(argv[0]);
  Report report("cuda/function_fit", options(argc, argv));
  const bool right = measure_gpu_step<FunctionFit, nn::Mse>(report, "1-80-80-40-1 step, batch 1000, fp32", 1000, {.lr = 0.05f},
                                                            {0.40}, {0.15}, {0.90}, {0.50});
  return report.finish(right);
}
