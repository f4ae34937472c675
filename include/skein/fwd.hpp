// SPDX-License-Identifier: Apache-2.0
// Forward declarations and empty tags. Includes no third party.
#pragma once
#include "core/config.hpp"

namespace skein::inline SKEIN_ABI {

struct Extents;
template <int... Extent> struct Shape;
struct Seed;
struct Cpu;
struct Cuda;
struct bf16;
struct fp16;
template <class Scalar, int Rank, class Device> class Tensor;
template <class Scalar, int Rank, class Device> struct TensorView;
class SelfComm;
class ThreadComm;
class MpiComm;
class History;
template <class Network, class Input, class Device, class Precision> class Model;
template <class Model, class Loss, class Optimizer, class Policy> class Trainer;
template <class Model> class Predictor;
template <class Model, class Loss, class Run> class Executor;

}  // namespace skein::inline SKEIN_ABI
