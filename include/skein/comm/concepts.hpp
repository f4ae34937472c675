// SPDX-License-Identifier: Apache-2.0
// What a communicator is: one role concept, and one small concept a collective, so that code which uses a few of them asks for
// those alone (Gossip and ParameterServer do), and a communicator offers what it has. What it can do beyond collectives is
// declared (capability.hpp), and looked at here alone. assert_communicator says in one sentence what a type lacks.
//
// What is started on one goes on while its thread waits in another (progress.hpp): MPI's rule of progress.
#pragma once
#include <concepts>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "../device/span.hpp"
#include "capability.hpp"
#include "op.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI {

/// The role: ranks 0 to size() - 1 with memory of one device.
template <class C> concept Communicator = requires(const C& c) {
  typename C::device;
  requires DeviceTag<typename C::device>;
  { c.rank() } -> std::same_as<int>;
  { c.size() } -> std::same_as<int>;
  { C::name } -> std::convertible_to<std::string_view>;
};

/// The span that a collective of C takes.
template <class C, class T> using CommSpan = DeviceSpan<T, typename C::device>;

/// C reduces T with Op (NCCL: only BuiltinReduction).
template <class C, class T, class Op> concept Reduces = Communicator<C> && C::template reduces<T, Op>;

/// C has `all_reduce(span, op)`: on every rank the span becomes the reduction over all ranks. Blocking.
template <class C, class T = float, class Op = Sum> concept AllReduces = Reduces<C, T, Op> &&
    requires(C& c, CommSpan<C, T> s, Op op) {
  c.all_reduce(s, op);
};
/// C has `start_all_reduce(span, op)`, whose request can be polled and waited for; the span is C's until it is done.
template <class C, class T = float, class Op = Sum> concept StartsAllReduce = Reduces<C, T, Op> &&
    requires(C& c, CommSpan<C, T> s, Op op) {
  { c.start_all_reduce(s, op).poll() } -> std::same_as<bool>;
  c.start_all_reduce(s, op).wait();
};
/// C has `reduce(span, op, root)`: the root's span becomes the reduction, the others keep theirs.
template <class C, class T = float, class Op = Sum> concept ReducesToRoot = Reduces<C, T, Op> &&
    requires(C& c, CommSpan<C, T> s, Op op) {
  c.reduce(s, op, 0);
};
/// C has `reduce_scatter(from, to, op)`: rank r gets the r-th of size() equal parts of the reduction.
template <class C, class T = float, class Op = Sum> concept ReduceScatters = Reduces<C, T, Op> &&
    requires(C& c, CommSpan<C, const T> s, CommSpan<C, T> t, Op op) {
  c.reduce_scatter(s, t, op);
};
/// C has `broadcast(span, root)`: on every rank the span becomes the root's.
template <class C, class T = float> concept Broadcasts = Communicator<C> && requires(C& c, CommSpan<C, T> s) {
  c.broadcast(s, 0);
};
/// C has `all_gather(from, to)`: `to` becomes the spans of all ranks, one behind the other.
template <class C, class T = float> concept AllGathers = Communicator<C> &&
    requires(C& c, CommSpan<C, const T> s, CommSpan<C, T> t) {
  c.all_gather(s, t);
};
/// C has `all_to_all(from, to)`: part r of `from` goes to rank r, and `to` has what came, by rank.
template <class C, class T = float> concept AllToAlls = Communicator<C> &&
    requires(C& c, CommSpan<C, const T> s, CommSpan<C, T> t) {
  c.all_to_all(s, t);
};
/// C has messages between two ranks: `send`, `recv`, `isend`, `irecv`, each with a rank and a tag.
template <class C, class T = float> concept Sends = Communicator<C> && requires(C& c, CommSpan<C, const T> s, CommSpan<C, T> t) {
  c.send(s, 0, 0);
  c.recv(t, 0, 0);
  { c.isend(s, 0, 0).poll() } -> std::same_as<bool>;
  { c.irecv(t, 0, 0).poll() } -> std::same_as<bool>;
};
/// C has `barrier()`: nobody leaves before all have come.
template <class C> concept Synchronizes = Communicator<C> && requires(C& c) { c.barrier(); };
/// C has `split(color, key)`: the communicator of the ranks that gave the same color, in the order of their keys.
template <class C> concept Splits = Communicator<C> && requires(C& c) {
  { c.split(0, 0) } -> Communicator;
};

namespace comm {
namespace detail {
// The functions of each capability.
template <class C> concept HasNodes = requires(const C& c) {
  { c.node_size() } -> std::same_as<int>;
};
template <class C> concept HasNodePlaces = requires(const C& c) {
  { c.node_rank() } -> std::same_as<int>;
};
template <class C> concept HasProcesses = requires(const C& c) {
  { c.one_process() } -> std::same_as<bool>;
};
template <class C> concept HasDevices = requires(const C& c) {
  { c.where() } -> std::same_as<typename C::device>;
};
template <class C> concept HasCaptures = requires(C& c, const C& looked_at) {
  looked_at.check();
  c.replayed();
};
template <class C> concept HasBucketSizes = requires {
  { C::bucket_bytes } -> std::convertible_to<long>;
  { C::first_bucket_bytes } -> std::convertible_to<long>;
};
template <class C> concept HasDeadlines = requires(const C& c) {
  { c.deadline() } -> std::same_as<double>;
};
template <class C> concept HasFailures = requires(C& c, const std::string& message) { c.fail(message); };
template <class C> concept HasOrders = requires(const C& c) {
  { c.order() } -> std::same_as<ReductionOrder>;
};
template <class C> concept HasClocks = requires(C& c) {
  { c.now() } -> std::same_as<double>;
  { c.waited() } -> std::same_as<double>;
};
template <class C> concept HasComputes = requires(C& c, double seconds) { c.compute(seconds); };
template <class C> concept HasSplits = requires(C& c) {
  { c.split(0, 0) } -> std::same_as<C>;
};
template <class C> concept HasShares = requires(C& c, std::size_t bytes) {
  { c.share(bytes) } -> std::same_as<SharedPages>;
};
}  // namespace detail

/// The first capability that C declares without its functions, or whose functions it has without declaring it; capability_count
/// where there is none.
template <class C> consteval unsigned first_capability_fault() {
  const bool there[] = {detail::HasNodes<C>,    detail::HasNodePlaces<C>,  detail::HasProcesses<C>, detail::HasDevices<C>,
                        detail::HasCaptures<C>, detail::HasBucketSizes<C>, detail::HasDeadlines<C>, detail::HasFailures<C>,
                        detail::HasOrders<C>,   detail::HasClocks<C>,      detail::HasComputes<C>,  detail::HasSplits<C>,
                        detail::HasShares<C>};
  static_assert(std::size(there) == capability_count);
  for (unsigned i = 0; i < capability_count; ++i)
    if (there[i] != capabilities_of<C>.has(Capability{i})) return i;
  return capability_count;
}

/// C is a communicator of the device's memory that has what it declares, and declares what it has.
template <class C, class Device> inline constexpr bool sound = false;
template <Communicator C> inline constexpr bool sound<C, typename C::device> = first_capability_fault<C>() == capability_count;

/// Refuses, with one sentence, a communicator of which a call would be left out.
template <class C> consteval void assert_capabilities() {
  constexpr Capability fault{first_capability_fault<C>()};
  using enum Capability;
  static_assert(fault != nodes,
                "a communicator has int node_size() const, and declares comm::Capability::nodes: both or neither");
  static_assert(fault != node_places,
                "a communicator has int node_rank() const, and declares comm::Capability::node_places: both or neither");
  static_assert(fault != processes,
                "a communicator has bool one_process() const, and declares comm::Capability::processes: both or neither");
  static_assert(
      fault != devices,
      "a communicator has where() const, which gives its device, and declares comm::Capability::devices: both or neither");
  static_assert(fault != captures,
                "a communicator has check() const and replayed(), and declares comm::Capability::captures: both or neither");
  static_assert(fault != bucket_sizes,
                "a communicator has bucket_bytes and first_bucket_bytes, and declares comm::Capability::bucket_sizes: both or "
                "neither");
  static_assert(fault != deadlines,
                "a communicator has double deadline() const, and declares comm::Capability::deadlines: both or neither");
  static_assert(fault != failures,
                "a communicator has fail(const std::string&), and declares comm::Capability::failures: both or neither");
  static_assert(fault != orders,
                "a communicator has ReductionOrder order() const, and declares comm::Capability::orders: both or neither");
  static_assert(fault != clocks,
                "a communicator has double now() and double waited(), and declares comm::Capability::clocks: both or neither");
  static_assert(fault != computes,
                "a communicator has compute(double seconds), and declares comm::Capability::computes: both or neither");
  static_assert(fault != splits,
                "a communicator has split(color, key), which gives one of its own type, and declares comm::Capability::splits: "
                "both or neither");
  static_assert(fault != shares,
                "a communicator has share(std::size_t bytes), which gives comm::SharedPages, and declares "
                "comm::Capability::shares: both or neither");
}

template <class C> inline constexpr bool is_a_communicator = Communicator<C>;
template <class C, class Device> inline constexpr bool works_on = std::same_as<typename C::device, Device>;
}  // namespace comm

/// Refuses at compile time, with one sentence, a type that is no communicator of the device.
template <class C, class Device = Cpu> consteval void assert_communicator() {
  if constexpr (!Communicator<C>)
    static_assert(
        comm::is_a_communicator<C>,
        "this is no communicator: it needs a type `device` (Cpu or Cuda), rank() and size() that return int, and a `name`");
  else if constexpr (!comm::works_on<C, Device>)
    static_assert(comm::works_on<C, Device>,
                  "the communicator moves memory of another device than the model's: MpiComm, GlooComm and ThreadComm go with "
                  "Cpu; for Cuda take NcclComm, or HostBounce<MpiComm>, which copies through the host");
  else comm::assert_capabilities<C>();
}

}  // namespace skein::inline SKEIN_ABI
