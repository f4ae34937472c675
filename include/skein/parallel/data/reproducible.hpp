// SPDX-License-Identifier: Apache-2.0
// Reproducible<V>: the same weights, as bits, on any number of ranks and threads. Each batch is cut into V virtual shards by its
// size alone; a shard is computed by one worker and has gradients of its own; the V gradients are summed by a fixed binary tree
// (plan/virtual_shards.hpp). Ranks sum the subtrees that they have whole, and exchange those: nothing is left to the order in
// which a transport adds. Costs memory of V / R gradients a rank, two arrays for the exchange, and what communication could have
// been hidden behind backward.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../comm_policy_state.hpp"
#include "../exchange/tree_exchange.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
template <int V> inline constexpr bool is_a_number_of_shards = V >= 1 && V <= 1024;
}

/// Trains to the same bits on any number of ranks and threads, by V virtual shards. V is a property of the training, as the
/// batch is: another V gives other bits. The last bits of evaluate() still depend on the ranks. Refused: more ranks than V,
/// ReductionOrder::native, Partition::local, networks with batch normalisation, GPUs.
template <int V> struct Reproducible : OptionBase {
  static_assert(detail::is_a_number_of_shards<V>, "Reproducible<V>: a batch is cut into 1 to 1024 virtual shards");
  static constexpr OptionKind kind = OptionKind::reproducible;
  static std::string described() { return text("Reproducible<{}>", V); }

  template <class> using Exchange = TreeExchange<V>;

  template <class Inner> class Around : public Inner {
    using Comm = typename Inner::communicator;
    using Scalar = typename Inner::scalar;

   public:
    static constexpr Capabilities capabilities = Inner::capabilities | Capabilities{Capability::sums_shards};
    static constexpr int virtual_shards = V;

    using Inner::Inner;

    /// Throws the same ArgumentError on every rank where there are more ranks than shards, or values are added in native order.
    void start() {
      if (this->ranks() > V)
        throw ArgumentError(
            text("Reproducible<{}>: {} ranks have {} virtual shards to share: start at most {}, or take Reproducible<{}> or more",
                 V, this->ranks(), V, V, this->ranks()));
      if constexpr (comm::can<Comm, comm::Capability::orders>)
        if (this->comm().order() == ReductionOrder::native)
          throw ArgumentError(
              text("Reproducible<{}>: the communicator adds in native order, which is another on other ranks: give it "
                   "CommOptions{.order = ReductionOrder::ranks}, or set SKEIN_REDUCTION_ORDER=ranks",
                   V));
      Inner::start();
    }

    /// The sums of this rank's subtrees: see TreeExchange.
    void set_partial_sums(std::vector<Scalar*> sums) { this->exchange().set_partial_sums(std::move(sums)); }
  };
};

}  // namespace skein::inline SKEIN_ABI::parallel
