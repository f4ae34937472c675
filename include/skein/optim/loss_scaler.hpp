// SPDX-License-Identifier: Apache-2.0
// Loss scaling: gradients of activations that are stored in 16 bits may be too small for their type (fp16 ends at 2^-24), so that
// the loss, and with it every gradient, is multiplied by a scale, which the optimizer's factor takes out again. The scale is as
// large as it can be: a step whose gradients overflow is skipped and the scale is lowered; after many good ones it is raised.
// A state machine without memory of anything else: pure, the same on every rank that is told the same. Micikevicius et al.,
// "Mixed precision training", ICLR 2018; defaults of PyTorch's GradScaler.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>

#include "../core/error.hpp"
#include "../core/half.hpp"
#include "../core/text.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// How the loss is scaled. The default is dynamic.
struct LossScaling {
  double initial = 65536;
  double growth = 2;                      ///< factor after `interval` good steps in a row
  double backoff = 0.5;                   ///< factor after an overflow
  std::int64_t interval = 2000;           ///< 0: the scale never grows
  double least = 1, greatest = 16777216;  ///< the scale stays within; beyond 2^24 fp16 gains nothing
  bool looks = true;                      ///< for overflows, whose steps are skipped

  static constexpr LossScaling dynamic() { return {}; }
  /// The same scale always; steps that overflow are skipped all the same.
  static constexpr LossScaling fixed(double scale) {
    LossScaling s{.initial = scale, .growth = 1, .backoff = 1, .interval = 0};
    if (s.least > scale) s.least = scale;
    if (s.greatest < scale) s.greatest = scale;
    return s;
  }
  /// No scale, and nobody looks for overflows: bf16, whose range is float's.
  static constexpr LossScaling none() {
    LossScaling s = fixed(1);
    s.looks = false;
    return s;
  }
  constexpr bool active() const { return looks; }
  friend constexpr bool operator==(const LossScaling&, const LossScaling&) = default;

  /// Throws ArgumentError for values that cannot scale.
  void check() const {
    demand(least > 0 && least <= initial && initial <= greatest, "initial", initial,
           "the scale is positive, from .least to .greatest");
    constexpr double most = 3.4e38;
    demand(initial <= most, "initial", initial, "gradients are multiplied by it as floats, which end at 3.4e38");
    demand(greatest <= most, "greatest", greatest, "gradients are multiplied by it as floats, which end at 3.4e38");
    demand(growth >= 1 && growth <= most, "growth", growth, "good steps raise the scale: at least 1, and finite");
    demand(backoff > 0 && backoff <= 1, "backoff", backoff, "overflows lower the scale: above 0, at most 1");
    demand(interval >= 0, "interval", static_cast<double>(interval), "a number of steps; with 0 the scale never grows");
  }

 private:
  static void demand(bool holds, const char* member, double value, const char* rule) {
    if (!holds) throw ArgumentError(text("LossScaling{.{} = {}}: {}", member, value, rule));
  }
};

/// The scaling of a loss whose activations are of this type, where nobody says another: dynamic for fp16, none for bf16.
template <class Activation> constexpr LossScaling usual_loss_scaling() {
  return std::same_as<Activation, fp16> ? LossScaling::dynamic() : LossScaling::none();
}

/// The scale as it moves from step to step.
class LossScaler {
 public:
  constexpr explicit LossScaler(const LossScaling& options = LossScaling::none()) : options_(options), scale_(options.initial) {}

  constexpr const LossScaling& options() const { return options_; }
  constexpr bool active() const { return options_.active(); }
  constexpr double scale() const { return scale_; }
  /// May an overflow lower the scale: then a step that is not finite is skipped, and the next may be finite.
  constexpr bool can_fall() const { return active() && options_.backoff < 1 && scale_ > options_.least; }
  /// A scaler with other options, which begins anew. But a state that was loaded, and has seen no step since, goes on where the
  /// options let the scale move, within their bounds: a training that goes on has the scale that it was saved with.
  constexpr LossScaler with(const LossScaling& options) const {
    LossScaler other(options);
    if (loaded_ > 0) other.good_ = good_, other.skipped_ = skipped_, other.take_loaded(loaded_);
    return other;
  }
  /// Good steps since the scale last moved, and steps that were skipped so far.
  constexpr std::int64_t good_steps() const { return good_; }
  constexpr std::int64_t skipped() const { return skipped_; }

  /// After a step: did its gradients overflow? Returns whether the step counts.
  constexpr bool update(bool overflow) {
    loaded_ = 0;
    if (overflow) {
      ++skipped_;
      good_ = 0;
      scale_ = scale_ * options_.backoff < options_.least ? options_.least : scale_ * options_.backoff;
      return false;
    }
    if (options_.interval > 0 && ++good_ >= options_.interval) {  // one that was loaded may have counted further
      good_ = 0;
      scale_ = scale_ * options_.growth > options_.greatest ? options_.greatest : scale_ * options_.growth;
    }
    return true;
  }

  /// The state, not the options: a training that goes on may be given others. A scale of 1 that no step has seen is nobody's: a
  /// file of a training without scaling, as of bf16, may have one, and it is left alone.
  template <class Archive> void serialize(Archive& archive, unsigned) {
    double scale = loaded_ > 0 ? loaded_ : scale_;
    std::int64_t good = good_, skipped = skipped_;
    (archive & scale & good & skipped);
    if constexpr (Archive::is_loading::value)
      if (scale > 0 && (scale != 1 || good != 0 || skipped != 0)) good_ = good, skipped_ = skipped, take_loaded(scale);
  }

 private:
  /// What was loaded, where the options let the scale move: within their bounds. A fixed scale is theirs.
  constexpr void take_loaded(double scale) {
    loaded_ = scale;
    if (options_.growth == 1 && options_.backoff == 1) scale_ = options_.initial;
    else scale_ = scale < options_.least ? options_.least : scale > options_.greatest ? options_.greatest : scale;
  }

  LossScaling options_;
  double scale_;
  std::int64_t good_ = 0, skipped_ = 0;
  double loaded_ = 0;  ///< the scale that was loaded, before it came within bounds, until the next step; 0: none
};

}  // namespace skein::inline SKEIN_ABI::optim
