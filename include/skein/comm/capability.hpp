// SPDX-License-Identifier: Apache-2.0
// What a communicator can do beyond its rank, its size and its collectives: a set of capabilities, which it declares. Nobody asks
// a type whether it happens to have a function: what is declared is checked, and what is there without being declared is refused
// (concepts.hpp). ForwardsTo hands on what a communicator has that is wrapped, all of it but what is named.
#pragma once
#include <string>

#include "../core/enum_set.hpp"
#include "options.hpp"
#include "shared_pages.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// One capability, and the functions that whoever declares it has.
enum class Capability : unsigned {
  nodes,         ///< int node_size() const: ranks on this rank's node, which share its cores
  node_places,   ///< int node_rank() const: this rank's place among them
  processes,     ///< bool one_process() const: the ranks of its node are threads of one process
  devices,       ///< where() const: this rank's device
  captures,      ///< check() const, which throws where it has failed, and replayed(): its calls may be part of a CUDA graph
  bucket_sizes,  ///< bucket_bytes, first_bucket_bytes: of gradients, as it likes them
  deadlines,     ///< double deadline() const: seconds until a rank that does not arrive is named
  failures,      ///< fail(message): ends all ranks with a CommError
  orders,        ///< ReductionOrder order() const: how it adds
  clocks,        ///< double now() and double waited(): its ranks have a clock of their own
  computes,      ///< compute(seconds): so much time passes on this rank
  splits,        ///< split(color, key): a communicator of its own kind, of some of its ranks
  shares,        ///< share(bytes): SharedPages, whose all-reduces copy nothing. A call of all ranks
};
inline constexpr unsigned capability_count = 13;
/// A set of them.
using Capabilities = EnumSet<Capability>;

/// What C declares as its `capabilities`; nothing where it has none.
template <class C> inline constexpr Capabilities capabilities_of{};
template <class C>
requires requires { C::capabilities; }
inline constexpr Capabilities capabilities_of<C> = C::capabilities;

/// C declares this capability.
template <class C, Capability Which> inline constexpr bool can = capabilities_of<C>.has(Which);

/// What a wrapper says of buckets: what Inner says, where it says something.
template <class Inner, bool Says> struct ForwardedBucketSizes {};
template <class Inner> struct ForwardedBucketSizes<Inner, true> {
  static constexpr long bucket_bytes = Inner::bucket_bytes, first_bucket_bytes = Inner::first_bucket_bytes;
};

/// The base of a communicator around another, `inner()`: it declares, and hands on, what Inner declares, but for split(), whose
/// result would go past the wrapper, and for what is named. It does not own Inner.
template <class Inner, Capability... Without> class ForwardsTo
    : public ForwardedBucketSizes<Inner, (capabilities_of<Inner> - Capabilities{Without...}).has(Capability::bucket_sizes)> {
  template <Capability Which> static constexpr bool hands_on =
      can<Inner, Which> && !Capabilities{Capability::splits, Without...}.has(Which);

 public:
  static constexpr Capabilities capabilities = capabilities_of<Inner> - Capabilities{Capability::splits, Without...};

  int node_size() const requires(hands_on<Capability::nodes>) { return inner_->node_size(); }
  int node_rank() const requires(hands_on<Capability::node_places>) { return inner_->node_rank(); }
  bool one_process() const requires(hands_on<Capability::processes>) { return inner_->one_process(); }
  auto where() const requires(hands_on<Capability::devices>) { return inner_->where(); }
  void check() const requires(hands_on<Capability::captures>) { inner_->check(); }
  void replayed() requires(hands_on<Capability::captures>) { inner_->replayed(); }
  double deadline() const requires(hands_on<Capability::deadlines>) { return inner_->deadline(); }
  void fail(const std::string& message) requires(hands_on<Capability::failures>) { inner_->fail(message); }
  ReductionOrder order() const requires(hands_on<Capability::orders>) { return inner_->order(); }
  double now() requires(hands_on<Capability::clocks>) { return inner_->now(); }
  double waited() requires(hands_on<Capability::clocks>) { return inner_->waited(); }
  void compute(double seconds) requires(hands_on<Capability::computes>) { inner_->compute(seconds); }
  SharedPages share(std::size_t bytes) requires(hands_on<Capability::shares>) { return inner_->share(bytes); }

 protected:
  ForwardsTo() = default;
  explicit ForwardsTo(Inner& inner) : inner_(&inner) {}
  Inner& inner() const { return *inner_; }
  void forward_to(Inner& inner) { inner_ = &inner; }

 private:
  Inner* inner_ = nullptr;
};

}  // namespace skein::inline SKEIN_ABI::comm
