// SPDX-License-Identifier: Apache-2.0
// Sharded<ZeroLevel>: each rank keeps the optimizer's state of its part of the parameters alone, updates that part, and all
// gather the new weights. Level 1: gradients by all-reduce; level 2: by reduce-scatter, half of that traffic, after which a rank
// has the step's gradients of its part alone. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models", SC 2020.
#pragma once
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "../../comm/op.hpp"
#include "../../plan/placement.hpp"
#include "../comm_policy_state.hpp"
#include "../exchange/scatter_exchange.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
template <int ZeroLevel> inline constexpr bool is_a_zero_level = ZeroLevel == 1 || ZeroLevel == 2;

/// Around the policy state, at both levels: who owns what, and the gathering of it.
template <class Inner> class PartOwner : public Inner {
  using Comm = typename Inner::communicator;
  using Scalar = typename Inner::scalar;
  using Device = typename Inner::device;

 public:
  static constexpr Capabilities capabilities = Inner::capabilities | Capabilities{Capability::owns_part};
  static constexpr bool capturable = false;

  template <class Options> PartOwner(Comm& comm, const Options& options, const Replica<Scalar, Device>& replica)
      : Inner(comm, options, replica), counts_(replica.placement.counts()) {}

  /// The new weights of all parts. Blocking.
  bool after_step(const StepDone& done) {
    const bool changed = Inner::after_step(done);
    if (!this->several()) return changed;
    const auto exposed = this->waiting();
    const auto all = this->replica().parameters;
    const plan::Range own = this->replica().placement.own();
    gather(all.sub(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.end)), all);
    return true;
  }

  /// Adds up, on all ranks alike, what each has summed over its own part. Blocking.
  void sum_over_owners(std::span<double> values) {
    const auto exposed = this->waiting();
    this->reduce(values);
  }
  /// Adds up likewise numbers in the device's memory.
  void sum_over_owners_there(DeviceSpan<double, Device> values) {
    if (this->several()) this->comm().all_reduce(values, Sum{});
  }
  /// An array of which every rank has its part becomes whole on all. Blocking.
  void gather(DeviceSpan<Scalar, Device> own, DeviceSpan<Scalar, Device> whole) {
    this->comm().all_gather_v(own, std::span<const std::size_t>(counts_), whole);
  }

 private:
  std::vector<std::size_t> counts_;
};
}  // namespace detail

/// An option of DataParallel (ZeRO). Each of R ranks has 1 / R of the optimizer's state. A checkpoint has the whole state, so it
/// loads into any number of ranks, sharded or not.
template <int ZeroLevel> struct Sharded : OptionBase {
  static_assert(detail::is_a_zero_level<ZeroLevel>,
                "Sharded<1> shards the optimizer's state, Sharded<2> the gradients too: there is no other stage");
  static constexpr OptionKind kind = OptionKind::sharding;
  static constexpr bool scatters_gradients = ZeroLevel == 2;
  static constexpr bool slices_updates = true;
  static std::string described() { return text("Sharded<{}>", ZeroLevel); }

  template <class Inner> using Around = detail::PartOwner<Inner>;
  template <class E> using Exchange = std::conditional_t<scatters_gradients, ScatterExchange, E>;
};

}  // namespace skein::inline SKEIN_ABI::parallel
