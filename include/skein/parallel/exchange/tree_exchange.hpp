// SPDX-License-Identifier: Apache-2.0
// TreeExchange<V>: what Reproducible<V> chooses: the gradients of V virtual shards are summed by a fixed binary tree
// (plan/virtual_shards.hpp). Ranks sum the subtrees that they have whole, and exchange those, once all are there: nothing is left
// to the order in which a transport adds, and nothing is begun before backward has ended.
#pragma once
#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "../../plan/buckets.hpp"
#include "../../plan/virtual_shards.hpp"
#include "all_reduce_exchange.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The exchange of Reproducible<V>, after backward, on the host: (ranks - 1) / ranks of the arena in and out, twice, where each
/// rank has one subtree whole; where one has several, the first way has as many times that. Two arrays of the same size beside
/// it.
template <int V> struct TreeExchange {
  static constexpr std::string_view name = "tree";

  template <class Comm, class Scalar, class Device> class On : public ExchangeOn<Comm, Scalar, Device> {
    using Base = ExchangeOn<Comm, Scalar, Device>;

   public:
    On(Comm& comm, const Replica<Scalar, Device>& replica, const std::vector<plan::Range>& buckets)
        : Base(comm, replica, buckets), first_(static_cast<long>(replica.gradients.size)) {
      for (const plan::Range& b : buckets) first_ = std::min(first_, b.begin);
      if (comm.size() > 1 && comm.size() <= V) make_plan();
    }

    /// The sums of this rank's subtrees, in the order of plan::subtrees: arrays as long as the gradients with what is behind
    /// them.
    void set_partial_sums(std::vector<Scalar*> sums) { partial_ = std::move(sums); }

    /// All ranks get what their slice of the arena needs of all subtrees, finish the tree for it, and gather the slices.
    void backward_ended() {
      const int ranks = this->comm().size();
      for (int r = 0; r < ranks; ++r)
        for (std::size_t m = 0; m < partial_.size(); ++m)
          std::copy_n(partial_[m] + slice_begin(r), counts_[static_cast<std::size_t>(r)], send_.data() + slot(r, m));
      this->comm().all_to_all(DeviceSpan<Scalar, Device>(send_.data(), send_.size()),
                              DeviceSpan<Scalar, Device>(received_.data(), received_.size()));
      const long n = static_cast<long>(counts_[static_cast<std::size_t>(this->comm().rank())]);
      constexpr long block = 1024;  // stays in the first-level cache
      for (long at = 0; at < n; at += block)
        for (const Addition& a : additions_) {
          Scalar* const to = received_.data() + a.to + at;
          const Scalar* const from = received_.data() + a.from + at;
          for (long i = 0; i < std::min(block, n - at); ++i) to[i] += from[i];
        }
      const auto whole = this->replica().gradients, all = whole.sub(static_cast<std::size_t>(first_), whole.size);
      Scalar* const mine = whole.data + slice_begin(this->comm().rank());
      std::copy_n(received_.data(), n, mine);  // the root of the tree is where its first leaf was: rank 0's first
      this->comm().all_gather_v(DeviceSpan<Scalar, Device>(mine, static_cast<std::size_t>(n)),
                                std::span<const std::size_t>(counts_), all);
    }

    void begin(std::size_t) {}
    bool poll(std::size_t) { return false; }
    void wait(std::size_t) {}

   private:
    struct Addition {
      std::size_t to = 0, from = 0;
    };
    struct Leaf {
      plan::TreeNode node{};
      std::size_t slot = 0;
    };

    /// Rank r's slice of the gradients from the first trained layer on, with what is behind them.
    plan::Range slice(int r) const {
      const plan::Range s = plan::even_range(static_cast<long>(this->replica().gradients.size) - first_, this->comm().size(), r);
      return {first_ + s.begin, first_ + s.end};
    }
    long slice_begin(int r) const { return slice(r).begin; }
    std::size_t slot(int rank, std::size_t m) const { return (static_cast<std::size_t>(rank) * most_ + m) * pitch_; }

    void make_plan() {
      const int ranks = this->comm().size();
      for (int r = 0; r < ranks; ++r) {
        const plan::Range of_rank = slice(r);
        counts_.push_back(static_cast<std::size_t>(of_rank.end - of_rank.begin));
        pitch_ = std::max(pitch_, counts_.back());
        most_ = std::max(most_, plan::subtrees(plan::virtual_shards(V, ranks, r)).size());
      }
      std::vector<Leaf> leaves;
      for (int r = 0; r < ranks; ++r) {
        std::size_t m = 0;
        for (const plan::TreeNode& n : plan::subtrees(plan::virtual_shards(V, ranks, r))) leaves.push_back({n, slot(r, m++)});
      }
      add(leaves, {0, V});
      send_.assign(slot(ranks, 0), Scalar(0));
      received_.assign(send_.size(), Scalar(0));
    }
    /// What makes a node of its leaves, children first; returns where it is then.
    std::size_t add(const std::vector<Leaf>& leaves, const plan::TreeNode& node) {
      for (const Leaf& l : leaves)
        if (l.node == node) return l.slot;
      const std::size_t left = add(leaves, {node.begin, node.middle()}), right = add(leaves, {node.middle(), node.end});
      additions_.push_back({left, right});
      return left;
    }

    std::vector<Scalar*> partial_;
    long first_;                           // gradients before it are of frozen layers, zero on every rank
    std::vector<std::size_t> counts_;      // scalars of each rank's slice of the arena
    std::size_t pitch_ = 0, most_ = 0;     // the longest slice; the most subtrees of a rank
    std::vector<Scalar> send_, received_;  // (ranks, most_, pitch_)
    std::vector<Addition> additions_;
  };
};

}  // namespace skein::inline SKEIN_ABI::parallel
