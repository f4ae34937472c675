// SPDX-License-Identifier: Apache-2.0
// AveragedModel: a second model whose weights are an average of the first one's while that is trained. Exponential after each
// step, or the mean over the ends of epochs (stochastic weight averaging, Izmailov et al., arXiv:1803.05407), as PyTorch's
// AveragedModel with use_buffers has them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "../core/text.hpp"
#include "../device/device.hpp"
#include "fit_control.hpp"
#include "records.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Which average: see ema() and swa().
struct AverageOptions {
  double decay = 0;    ///< not 0: average = decay * average + (1 - decay) * weights, after each step
  int from_epoch = 1;  ///< else the mean over the ends of epochs from this one on
};
/// The exponential average after each optimizer step. Throws ArgumentError unless 0 < decay < 1.
inline AverageOptions ema(double decay = 0.999) {
  if (!(decay > 0 && decay < 1)) throw ArgumentError("ema: the decay is between 0 and 1, as 0.999 is");
  return {.decay = decay};
}
/// The mean of the weights at the ends of epochs, from this epoch on.
inline AverageOptions swa(int from_epoch) { return {.from_epoch = from_epoch}; }

/// sk::train::AveragedModel average{model, sk::train::ema(0.999)};  trainer.fit(data, {.callbacks = {average}}). Both
/// models have to outlive the fit. model() is evaluated and predicts as any model; train::save_weights(path, average.model())
/// saves it. Of models on the Cpu whose weights are whole on this rank.
template <class Model> class AveragedModel {
  using Scalar = typename Model::Scalar;
  static_assert(on_host<typename Model::device>, "AveragedModel: averages are made on the Cpu: take a model that is there");

 public:
  /// Throws ArgumentError for a decay by which nothing would ever be averaged.
  AveragedModel(Model& trained, AverageOptions options)
      : trained_(&trained), state_(std::make_shared<State>(trained.seed())), options_(options) {
    if (!(options.decay >= 0 && options.decay < 1))
      throw ArgumentError(
          text("AveragedModel: .decay is {}: between 0 and 1, as ema(0.999) has it; 0: the mean over the ends of epochs, as of "
               "swa(5)",
               options.decay));
  }

  /// The model of the averages; before the first one it has initial weights.
  Model& model() { return state_->average; }
  /// How many weights have gone into the average.
  std::int64_t count() const { return state_->count; }

  void on_update(std::int64_t) {
    if (options_.decay > 0) add(state_->count == 0 ? 1 : 1 - options_.decay);
  }
  void on_epoch_end(const EpochRecord& epoch, FitControl&) {
    if (options_.decay == 0 && epoch.epoch >= options_.from_epoch) add(1 / static_cast<double>(state_->count + 1));
  }
  static std::string saved_as() { return "AveragedModel"; }
  template <class Archive> void serialize(Archive& archive, unsigned) {
    std::vector<Scalar> weights(model().parameters().begin(), model().parameters().end()),
        buffers(model().buffers().begin(), model().buffers().end());
    std::int64_t count = state_->count;
    (archive & count & weights & buffers);
    if constexpr (Archive::is_loading::value) {
      if (weights.size() != model().parameters().size || buffers.size() != model().buffers().size)
        archive.refuse(text(
            "the AveragedModel of the file has {} weights and {} buffer values, this one {} and {}: it is of another network",
            weights.size(), buffers.size(), model().parameters().size, model().buffers().size));
    }
    state_->count = count;
    const auto lease = model().modify();
    for (std::size_t i = 0; i < weights.size(); ++i) lease.data()[i] = weights[i];
    for (std::size_t i = 0; i < buffers.size(); ++i) model().buffers().data[i] = buffers[i];
  }

 private:
  /// average += share * (weights - average), of buffers too; the first one is a copy.
  void add(double share) {
    ++state_->count;
    const auto lease = model().modify();
    const auto toward = [&](Scalar* to, const Scalar* from, std::size_t n) {
      const Scalar s = static_cast<Scalar>(share);
      if (share == 1) std::copy_n(from, n, to);
      else
        for (std::size_t i = 0; i < n; ++i) to[i] += s * (from[i] - to[i]);
    };
    const Model& trained = *trained_;
    toward(lease.data(), trained.parameters().data, trained.parameters().size);
    toward(model().buffers().data, trained.buffers().data, trained.buffers().size);
  }

  struct State {
    explicit State(Seed seed) : average(seed) {}
    Model average;
    std::int64_t count = 0;
  };

  Model* trained_;
  std::shared_ptr<State> state_;
  AverageOptions options_;
};

}  // namespace skein::inline SKEIN_ABI::train
