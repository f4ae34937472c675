// SPDX-License-Identifier: Apache-2.0
// The second device: tensors, operations, layers, optimizers and trainings on sk::Cuda. Includes skein.hpp; compile with nvcc as
// C++20 (the target skein::cuda says how). With NCCL: skein/nccl.hpp.
#pragma once
#include "skein.hpp"

#include "comm/cuda/host_bounce.hpp"
#include "device/cuda/captured_graph.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/memory.hpp"
#include "device/cuda/pinned.hpp"
#include "nn/cuda/layer_norm.hpp"
#include "nn/cuda/linear.hpp"
#include "nn/cuda/step_memory.hpp"
#include "ops/cuda/convert.hpp"
#include "ops/cuda/dense.hpp"
#include "ops/cuda/dropout.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/for_each.hpp"
#include "ops/cuda/gemm.hpp"
#include "ops/cuda/label_loss.hpp"
#include "ops/cuda/map.hpp"
#include "ops/cuda/optimizer.hpp"
#include "ops/cuda/pool2d.hpp"
#include "ops/cuda/row_normalize.hpp"
#include "ops/cuda/softmax.hpp"
#include "ops/cuda/spmv.hpp"
#include "ops/cuda/step_scale.hpp"
#include "ops/cuda/transpose.hpp"
#include "ops/cuda/vector_loss.hpp"
#include "tensor/cuda/evaluator.hpp"
#include "tensor/cuda/reducer.hpp"
#include "tensor/cuda/sorter.hpp"
#include "tensor/cuda/static_evaluate.hpp"
#include "train/cuda/step_device.hpp"

// Without cuDNN: no convolution, batch normalisation and softmax layers on GPUs; all else is there. skein::cuda says whether
// there is one, and links it.
#if SKEIN_WITH_CUDNN
#include "nn/cuda/batch_norm.hpp"
#include "nn/cuda/conv2d.hpp"
#include "ops/cuda/conv_transpose2d.hpp"
#include "ops/cuda/row_softmax.hpp"
#endif
