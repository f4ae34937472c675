// SPDX-License-Identifier: Apache-2.0
// A batch in virtual shards: each has gradients of its own and is one worker's, depth-first, so that the bits of its gradients do
// not depend on the number of workers. Their sum follows a tree that is the same on any number of ranks
// (plan/virtual_shards.hpp).
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "../../plan/virtual_shards.hpp"
#include "depth_first.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Every worker: forward, loss and backward of some shards of this rank, whichever. Their sums lie behind their gradients.
template <class Pass> void run_shards(Pass& pass, typename Pass::Memory& memory, const plan::VirtualShards& shards,
                                      const Worker& w, const typename Pass::View& batch, const PassCall& call) {
  using Scalar = typename Pass::Scalar;
  auto& s = memory.state(w.index);
  const auto at = [&](int shard) { return static_cast<long>(plan::shard_begin(call.global_count, shards.total, shard)); };
  const auto [lo, hi] = w.slice(shards.count());
  for (int i = static_cast<int>(lo); i < static_cast<int>(hi); ++i) {
    Scalar* const g = s.run.gradients = memory.gradients(i);
    Scalar* const tail = g + Pass::Memory::sizes.stored;
    s.sums = {};
    if (!call.accumulate) {
      memory.clear_gradients(s);
      for (int k = 0; k < 3; ++k) tail[k] = 0;
    }
    const long first = at(shards.begin), begin = at(shards.begin + i) - first, end = at(shards.begin + i + 1) - first;
    run_depth_first(pass, s, memory.capacity(), {begin, end}, batch, call);
    tail[0] += static_cast<Scalar>(s.sums.loss);
    tail[1] += static_cast<Scalar>(s.sums.weight);
    tail[2] += static_cast<Scalar>(s.sums.correct);
  }
}

/// Adds up the gradients of this rank's shards, with the sums behind them.
template <class Scalar> class ShardSums {
 public:
  /// `gradients`: an array a shard, of `stored` scalars and the tail; those before `first` are zero, of all shards.
  ShardSums(const plan::VirtualShards& shards, std::vector<Scalar*> gradients, long stored, long first = 0)
      : shards_(shards), gradients_(std::move(gradients)), stored_(stored), first_(first), subtrees_(plan::subtrees(shards)) {}

  /// Every worker: each subtree of the summation tree that this rank has whole becomes one array, in the place of its first
  /// shard.
  void sum(const Worker& w) const {
    const auto slice = w.slice(stored_ + gradient_tail - first_, 16);
    for (const plan::TreeNode& node : subtrees_) {
      if (node.leaf()) continue;
      Scalar* const to = array(node.begin);
      for (long at = first_ + slice.first; at < first_ + slice.second; at += block) {
        const long n = std::min(block, first_ + slice.second - at);
        Scalar scratch[levels * block];
        const Scalar* from = sum_tree(node, at, n, scratch);
        for (long i = 0; i < n; ++i) to[at + i] = from[i];
      }
    }
  }
  /// The sums of loss, weight and correct answers of this rank's shards, in their last call or accumulated calls.
  LossSums batch_sums() const {
    LossSums all;
    for (const Scalar* g : gradients_) {
      const Scalar* tail = g + stored_;
      all += {static_cast<double>(tail[0]), static_cast<double>(tail[1]), static_cast<double>(tail[2])};
    }
    return all;
  }
  /// The arrays that sum() leaves to be exchanged, in the order of plan::subtrees.
  std::vector<Scalar*> subtree_sums() const {
    std::vector<Scalar*> all;
    for (const plan::TreeNode& node : subtrees_) all.push_back(array(node.begin));
    return all;
  }

 private:
  static constexpr long block = 512, levels = 12;

  Scalar* array(int shard) const { return gradients_[static_cast<std::size_t>(shard - shards_.begin)]; }
  /// Scalars [at, at + n) of a subtree's sum: the leaf's own, or in scratch.
  const Scalar* sum_tree(const plan::TreeNode& node, long at, long n, Scalar* scratch) const {
    if (node.leaf()) return array(node.begin) + at;
    const Scalar* left = sum_tree({node.begin, node.middle()}, at, n, scratch);
    const Scalar* right = sum_tree({node.middle(), node.end}, at, n, scratch + block);
    for (long i = 0; i < n; ++i) scratch[i] = left[i] + right[i];
    return scratch;
  }

  plan::VirtualShards shards_;
  std::vector<Scalar*> gradients_;
  long stored_, first_;
  std::vector<plan::TreeNode> subtrees_;
};

}  // namespace skein::inline SKEIN_ABI::nn
