// SPDX-License-Identifier: Apache-2.0
// Names that other libraries give to options of fit. FitOptions and its parts have them as members that take no memory and refuse
// every value, so that a program that writes one is told how the option is called here. Of a name that no member has, gcc says
// only that the braces are no FitOptions.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::train::detail {
namespace refused {

template <class> inline constexpr bool by_this_name = false;

struct NumEpochs {
  constexpr NumEpochs() = default;
  template <class T> constexpr NumEpochs(const T&) {
    static_assert(by_this_name<T>, "fit has no option of this name: the number of epochs is .epochs");
  }
};
struct BatchSize {
  constexpr BatchSize() = default;
  template <class T> constexpr BatchSize(const T&) {
    static_assert(by_this_name<T>,
                  "there is no .batch_size: .batch is the samples of a batch over all ranks, and fit has "
                  ".loader = {.batch_per_rank = 32}");
  }
};
struct ValidationData {
  constexpr ValidationData() = default;
  template <class T> constexpr ValidationData(const T&) {
    static_assert(by_this_name<T>, "fit has no option of this name: the data that it evaluates after each epoch is .validate");
  }
};
struct ValidationSplit {
  constexpr ValidationSplit() = default;
  template <class T> constexpr ValidationSplit(const T&) {
    static_assert(by_this_name<T>, "fit splits no data: auto [train, rest] = sk::data::split(set, 0.8), and .validate = rest");
  }
};
struct LearningRate {
  constexpr LearningRate() = default;
  template <class T> constexpr LearningRate(const T&) {
    static_assert(by_this_name<T>, "fit has no learning rate: the optimizer has it, Sgd{.lr = 0.1f}; .schedule is factors of it");
  }
};
struct MaxNorm {
  constexpr MaxNorm() = default;
  template <class T> constexpr MaxNorm(const T&) {
    static_assert(by_this_name<T>, "fit has no option of this name: the limit of the gradients' global norm is .clip_norm");
  }
};
struct Verbose {
  constexpr Verbose() = default;
  template <class T> constexpr Verbose(const T&) {
    static_assert(by_this_name<T>, "fit has no .verbose: .progress = false prints nothing");
  }
};
struct OfLoader {
  constexpr OfLoader() = default;
  template <class T> constexpr OfLoader(const T&) {
    static_assert(by_this_name<T>,
                  "how samples are served is an option of .loader: .loader = {.shuffle = false, .last = LastBatch::drop, "
                  ".prefetch_threads = 2}");
  }
};
struct OfCallbacks {
  constexpr OfCallbacks() = default;
  template <class T> constexpr OfCallbacks(const T&) {
    static_assert(by_this_name<T>,
                  "what is done after epochs and steps is in .callbacks: .callbacks = {sk::train::EarlyStopping{.patience = 3}}");
  }
};
struct OfCheckpoint {
  constexpr OfCheckpoint() = default;
  template <class T> constexpr OfCheckpoint(const T&) {
    static_assert(by_this_name<T>, "where fit saves its training is .folder: .checkpoint = {.folder = \"training\"}");
  }
};
struct OfStep {
  constexpr OfStep() = default;
  template <class T> constexpr OfStep(const T&) {
    static_assert(by_this_name<T>, "batches that make one step are an option of .step: .step = {.accumulate = 4}");
  }
};
struct OfScale {
  constexpr OfScale() = default;
  template <class T> constexpr OfScale(const T&) {
    static_assert(by_this_name<T>,
                  "the scale of a loss is an option of .step: .step = {.loss_scaling = LossScaling{}}; that numbers are of 16 "
                  "bits is an argument of the model");
  }
};
struct OfCompute {
  constexpr OfCompute() = default;
  template <class T> constexpr OfCompute(const T&) {
    static_assert(by_this_name<T>,
                  "how a step is computed is an option of .compute: .compute = {.execution = Execution::layer_wise, .graph = "
                  "false}");
  }
};

}  // namespace refused
}  // namespace skein::inline SKEIN_ABI::train::detail
