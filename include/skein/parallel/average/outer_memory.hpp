// SPDX-License-Identifier: Apache-2.0
// The outer optimizer of ModelAverage on one rank: where all ranks began the period, and the step from there towards their mean.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../../data/finite.hpp"
#include "../../device/host_side.hpp"
#include "../../optim/transform/transform.hpp"
#include "../../plan/placement.hpp"
#include "model_average_options.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// to += factor * from, over [begin, end) of arrays on any device.
template <class Scalar, class Device> void add_scaled(Scalar* to, const Scalar* from, long count, double factor) {
  ops::SgdArguments<Scalar> arguments;  // p -= lr * g
  arguments.parameters = to;
  arguments.gradients = &from;
  arguments.gradient_count = 1;
  arguments.lr = static_cast<Scalar>(-factor);
  arguments.end = count;
  ops::sgd<Device>(arguments);
}

/// Arrays of a whole model on the device: the anchor, from which all ranks began the period, and the optimizer's state.
template <class Outer, class Scalar, class Device> class OuterMemory {
 public:
  OuterMemory(const Outer& outer, long stored, Device where)
      : where_(where), outer_(outer), anchor_(static_cast<std::size_t>(stored), where), way_(anchor_.size(), where) {
    for (int k = 0; k < outer_.state_arrays(); ++k) state_.emplace_back(anchor_.size(), where_);
  }
  const Outer& optimizer() const { return outer_; }
  const Scalar* anchor() const { return anchor_.data(); }
  void set_anchor(const Scalar* parameters) {
    Memory<Device>::copy(anchor_.data(), parameters, anchor_.size() * sizeof(Scalar), where_);
  }
  /// The optimizer's step `number` (from 1) of a part of the anchor, whose gradient is anchor - factor * sum.
  void step(plan::Range part, const Scalar* sum, double factor, std::int64_t number) {
    const long n = part.end - part.begin;
    Memory<Device>::copy(way_.data() + part.begin, anchor_.data() + part.begin, static_cast<std::size_t>(n) * sizeof(Scalar),
                         where_);
    add_scaled<Scalar, Device>(way_.data() + part.begin, sum, n, -factor);
    std::vector<Scalar*> state;
    for (auto& s : state_) state.push_back(s.data());
    const Scalar* way = way_.data();
    optim::UpdateCall<Scalar, Device> call;
    call.parameters = anchor_.data();
    call.gradients = &way;
    call.state = state.data();
    call.begin = part.begin;
    call.end = part.end;
    call.step = number;
    call.lr = static_cast<float>(outer_.lr);
    call.weight_decay = optim::weight_decay_of(outer_);
    optim::apply(outer_, call);
  }
  /// The first array of the state that is not finite, in a sentence without its end; "" where all are. (The anchor is what the
  /// weights were, and may be infinite where they are frozen.)
  std::string not_finite() {
    for (std::size_t k = 0; k < state_.size(); ++k) {
      HostSide<Scalar, Device> array(state_[k].data(), state_[k].size(), where_);
      array.read();
      if (data::detail::first_not_finite(std::span<const Scalar>(array.data(), array.size())) >= 0)
        return text("array {} of the outer optimizer (DiLoCo) is not finite", k);
    }
    return {};
  }
  /// The anchor and the state, for a file.
  std::vector<std::vector<Scalar>> saved() {
    std::vector<std::vector<Scalar>> arrays;
    each([&](Arena<Scalar, Device>& from) {
      arrays.emplace_back(from.size());
      Copy<Cpu, Device>::run(arrays.back().data(), from.data(), from.size() * sizeof(Scalar), {}, where_);
    });
    return arrays;
  }
  /// As before the first step.
  void forget() {
    for (auto& s : state_) Memory<Device>::clear(s.data(), s.size() * sizeof(Scalar), where_);
  }
  /// Takes them from a file; false where they are of another optimizer or model.
  bool load(const std::vector<std::vector<Scalar>>& arrays) {
    if (arrays.size() != 1 + state_.size()) return false;
    for (const auto& a : arrays)
      if (a.size() != anchor_.size()) return false;
    auto from = arrays.begin();
    each([&](Arena<Scalar, Device>& to) {
      Copy<Device, Cpu>::run(to.data(), (from++)->data(), to.size() * sizeof(Scalar), where_);
    });
    return true;
  }

 private:
  template <class Visit> void each(const Visit& visit) {
    visit(anchor_);
    for (auto& s : state_) visit(s);
  }

  Device where_;
  Outer outer_;
  Arena<Scalar, Device> anchor_, way_;  // way_: from the mean to the anchor
  std::vector<Arena<Scalar, Device>> state_;
};

/// Without an outer optimizer there is none.
template <class Scalar, class Device> class OuterMemory<PlainAverage, Scalar, Device> {
 public:
  OuterMemory(const PlainAverage&, long, Device) {}
  std::string not_finite() const { return {}; }
  std::vector<std::vector<Scalar>> saved() const { return {}; }
  void forget() const {}
  bool load(const std::vector<std::vector<Scalar>>& arrays) const { return arrays.empty(); }
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
