// SPDX-License-Identifier: Apache-2.0
// Reproducible<V>: the same weights, as bits, on any number of ranks and threads. Each batch is cut into V virtual shards by its
// size alone; a shard is computed by one worker and has gradients of its own; the V gradients are summed by a fixed binary tree
// (plan/virtual_shards.hpp). Ranks sum the subtrees that they have whole, and exchange those: nothing is left to the order in
// which a transport adds. Costs memory of V / R gradients a rank, and what communication could have been hidden behind backward.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../plan/buckets.hpp"
#include "../../plan/virtual_shards.hpp"
#include "../comm_policy_state.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
template <int V> inline constexpr bool is_a_number_of_shards = V >= 1 && V <= 1024;
}

/// An option of DataParallel. V is a property of the training, as the batch is: another V gives other bits. The last bits of
/// evaluate() still follow the ranks. Refused: more ranks than V, ReductionOrder::native, Partition::local, networks with batch
/// normalisation, GPUs.
template <int V> struct Reproducible {
  static_assert(detail::is_a_number_of_shards<V>, "Reproducible<V>: a batch is cut into 1 to 1024 virtual shards");
  static constexpr OptionKind kind = OptionKind::reproducible;

  template <class Inner> class Around : public Inner {
    using Comm = typename Inner::communicator;
    using Scalar = typename Inner::scalar;
    using Device = typename Inner::device;

   public:
    static constexpr Capabilities capabilities = Inner::capabilities | Capabilities{Capability::sums_shards};
    static constexpr int virtual_shards = V;

    template <class Options> Around(Comm& comm, const Options& options, const Replica<Scalar, Device>& replica)
        : Inner(comm, options, marked(replica)) {
      if (comm.size() > 1 && comm.size() <= V) make_plan();
    }

    /// Throws the same ArgumentError on every rank where there are more ranks than shards, or values are added in native order.
    void start() {
      if (this->ranks() > V)
        throw ArgumentError("Reproducible<" + std::to_string(V) + ">: " + std::to_string(this->ranks()) + " ranks have " +
                            std::to_string(V) + " virtual shards to share: start at most " + std::to_string(V) +
                            ", or take Reproducible<" + std::to_string(this->ranks()) + "> or more");
      if constexpr (HasReductionOrder<Comm>)
        if (this->comm().order() == ReductionOrder::native)
          throw ArgumentError("Reproducible<" + std::to_string(V) +
                              ">: the communicator adds in native order, which is another on other ranks: give it "
                              "CommOptions{.order = ReductionOrder::ranks}, or set SKEIN_REDUCTION_ORDER=ranks");
      Inner::start();
    }
    void gradient_ready(long, long) {}

    /// The sums of this rank's subtrees, in the order of plan::subtrees: arrays as long as the gradients with what is behind
    /// them.
    void set_partial_sums(std::vector<Scalar*> sums) { partial_ = std::move(sums); }

    /// All ranks get what their slice of the arena needs of all subtrees, finish the tree for it, and gather the slices.
    void finish_gradients() {
      this->timer().start();  // no gradient is ready before all are
      this->timer().backward_ends();
      const std::size_t buckets = this->trace().size();
      for (std::size_t b = 0; b < buckets; ++b) this->timer().begun(b);
      const int ranks = this->ranks();
      for (int r = 0; r < ranks; ++r)
        for (std::size_t m = 0; m < partial_.size(); ++m)
          std::copy_n(partial_[m] + begin(r), counts_[static_cast<std::size_t>(r)], send_.data() + slot(r, m));
      this->comm().all_to_all(DeviceSpan<Scalar, Device>(send_.data(), send_.size()),
                              DeviceSpan<Scalar, Device>(received_.data(), received_.size()));
      const long n = static_cast<long>(counts_[static_cast<std::size_t>(this->rank())]);
      constexpr long block = 1024;  // stays in the first-level cache
      for (long at = 0; at < n; at += block)
        for (const Addition& a : additions_) {
          Scalar* const to = received_.data() + a.to + at;
          const Scalar* const from = received_.data() + a.from + at;
          for (long i = 0; i < std::min(block, n - at); ++i) to[i] += from[i];
        }
      const auto all = this->replica().gradients;
      Scalar* const mine = all.data + begin(this->rank());
      std::copy_n(received_.data(), n, mine);  // the root of the tree is where its first leaf was: rank 0's first
      this->comm().all_gather_v(DeviceSpan<Scalar, Device>(mine, static_cast<std::size_t>(n)),
                                std::span<const std::size_t>(counts_), all);
      for (std::size_t b = 0; b < buckets; ++b) this->timer().complete(b);
      this->add_exposed(this->timer().stop());
    }

   private:
    struct Addition {
      std::size_t to = 0, from = 0;
    };
    struct Leaf {
      plan::TreeNode node{};
      std::size_t slot = 0;
    };

    static Replica<Scalar, Device> marked(Replica<Scalar, Device> replica) {
      replica.fingerprint = Fnv1a{}.add(replica.fingerprint).add(static_cast<std::uint64_t>(V)).value();
      return replica;
    }
    long begin(int r) const {
      return plan::even_range(static_cast<long>(this->replica().gradients.size), this->ranks(), r).begin;
    }
    std::size_t slot(int rank, std::size_t m) const { return (static_cast<std::size_t>(rank) * most_ + m) * pitch_; }

    void make_plan() {
      const int ranks = this->ranks();
      for (int r = 0; r < ranks; ++r) {
        const plan::Range slice = plan::even_range(static_cast<long>(this->replica().gradients.size), ranks, r);
        counts_.push_back(static_cast<std::size_t>(slice.end - slice.begin));
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
    std::vector<std::size_t> counts_;      // scalars of each rank's slice of the arena
    std::size_t pitch_ = 0, most_ = 0;     // the longest slice; the most subtrees of a rank
    std::vector<Scalar> send_, received_;  // (ranks, most_, pitch_)
    std::vector<Addition> additions_;
  };
};

}  // namespace skein::inline SKEIN_ABI::parallel
