// SPDX-License-Identifier: Apache-2.0
// The tape under autodiff::Variable: nodes numbered in the order in which they were made, each with the function that hands its
// gradient on to what it was made of. Reverse mode: Linnainmaa, BIT 1976; Griewank and Walther, 2008.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../tensor/reduce.hpp"
#include "../tensor/tensor.hpp"

namespace skein::inline SKEIN_ABI::autodiff::detail {

/// What all nodes have in common, whatever their rank.
struct TapeNode {
  std::uint64_t number = next_number();
  std::vector<std::shared_ptr<TapeNode>> inputs;  ///< of a result that wants a gradient: constants too, which may change
  bool wants_gradient = false;
  std::uint64_t changed = 0;  ///< what the last change of a leaf's value is numbered, among the nodes

  TapeNode() = default;
  TapeNode(const TapeNode&) = delete;
  TapeNode& operator=(const TapeNode&) = delete;
  /// A chain of a hundred thousand nodes must not end in as many nested destructors.
  virtual ~TapeNode() {
    std::vector<std::shared_ptr<TapeNode>> left = std::move(inputs);
    while (!left.empty()) {
      const std::shared_ptr<TapeNode> node = std::move(left.back());
      left.pop_back();
      if (node.use_count() > 1) continue;
      for (std::shared_ptr<TapeNode>& input : node->inputs) left.push_back(std::move(input));
      node->inputs.clear();
      node->forget();
    }
  }
  /// Hands the gradient on; a node without one has nothing to hand on.
  virtual void pull() = 0;
  virtual void clear_gradient() = 0;
  /// Lets go of what the function keeps alive.
  virtual void forget() = 0;
  bool leaf() const { return inputs.empty(); }
  void change() { changed = next_number(); }

 private:
  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
};

template <class S, int R, class D> struct ValueNode : TapeNode {
  using Values = Tensor<S, R, D>;
  Values value, gradient;
  bool has_gradient = false;
  std::function<void(const Values&)> hand_on;

  void pull() override {
    if (has_gradient && hand_on) hand_on(gradient);
  }
  void clear_gradient() override {
    gradient = Values();
    has_gradient = false;
  }
  void forget() override { hand_on = nullptr; }
  /// Adds an expression of this node's shape to its gradient.
  template <class E> void add(E&& e) {
    if (!wants_gradient) return;
    if (!has_gradient) gradient = Values(value.shape(), value.device()), assign(gradient.view(), std::forward<E>(e));
    else assign(gradient.view(), gradient.view() + std::forward<E>(e));
    has_gradient = true;
  }
};

/// The gradient of something that was broadcast to rank N: summed over the axes that it did not have, or had once.
template <int R, class S, int N, class D> Tensor<S, R, D> sum_to(Tensor<S, N, D> g, const Dims<R>& to) {
  if constexpr (N > R) {
    return sum_to<R>(Tensor<S, N - 1, D>(sum(g, 0)), to);
  } else {
    if constexpr (R > 0)
      for (int axis = 0; axis < R; ++axis)
        if (to.e[axis] == 1 && g.shape().e[axis] != 1) g = Tensor<S, R, D>(sum(g, axis, keep));
    return g;
  }
}

/// Runs backward from `root`, whose gradient is set: every node behind it once, the last made first.
inline void run_backward(const std::shared_ptr<TapeNode>& root) {
  std::vector<TapeNode*> all{root.get()};
  std::unordered_set<TapeNode*> seen{root.get()};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const std::shared_ptr<TapeNode>& input : all[i]->inputs) {
      if (input->changed > all[i]->number)
        throw ArgumentError(
            "Variable::backward: leaf() has changed a variable after this was computed from it: compute it again");
      if (seen.insert(input.get()).second) all.push_back(input.get());
    }
  std::sort(all.begin(), all.end(), [](const TapeNode* a, const TapeNode* b) { return a->number > b->number; });
  for (TapeNode* node : all)
    if (node != root.get() && !node->leaf()) node->clear_gradient();  // left from an earlier call
  for (TapeNode* node : all) {
    node->pull();
    if (!node->leaf() && node != root.get()) node->clear_gradient();  // only leaves keep theirs
  }
}

}  // namespace skein::inline SKEIN_ABI::autodiff::detail
