// SPDX-License-Identifier: Apache-2.0
// What a communicator is: one role concept, and one small concept a collective, so that a policy asks for what it uses and a
// communicator offers what it has. assert_communicator says in one sentence what a type lacks.
#pragma once
#include <concepts>
#include <cstddef>
#include <string_view>

#include "../device/span.hpp"
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
template <class C> concept Synchronises = Communicator<C> && requires(C& c) { c.barrier(); };
/// C has `split(color, key)`: the communicator of the ranks that gave the same color, in the order of their keys.
template <class C> concept Splits = Communicator<C> && requires(C& c) {
  { c.split(0, 0) } -> Communicator;
};

/// C can say in which order it adds (others keep the order of the ranks, or say on their page that they do not).
template <class C> concept HasReductionOrder = Communicator<C> && requires(const C& c) {
  { c.order() } -> std::same_as<ReductionOrder>;
};

namespace comm {
template <class C> inline constexpr bool is_a_communicator = Communicator<C>;
template <class C, class Device> inline constexpr bool works_on = std::same_as<typename C::device, Device>;
}  // namespace comm

/// Refuses at compile time, with one sentence, a type that is no communicator of the device.
template <class C, class Device = Cpu> consteval void assert_communicator() {
  if constexpr (!Communicator<C>)
    static_assert(
        comm::is_a_communicator<C>,
        "this is no communicator: it needs a type `device` (Cpu or Cuda), rank() and size() that return int, and a `name`");
  else
    static_assert(
        comm::works_on<C, Device>,
        "the communicator moves memory of another device than the model's: MpiComm and ThreadComm go with Cpu; for Cuda "
        "take NcclComm, or HostBounce<MpiComm>, which copies through the host");
}

}  // namespace skein::inline SKEIN_ABI
