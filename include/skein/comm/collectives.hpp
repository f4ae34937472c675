// SPDX-License-Identifier: Apache-2.0
// The typed interface of every communicator: checks arguments, makes a CollectiveCall of a call and hands it to the engine. All
// ranks get the same bits. Values are reduced in the order of the ranks, ((x0 + x1) + x2) + ..., over threads, shared memory and
// networks alike, but by MpiComm where order() is ReductionOrder::native, by Hierarchical, which adds by nodes, and by NcclComm.
// The caller owns every buffer; MpiComm and ThreadComm allocate nothing after the first calls.
#pragma once
#include <span>
#include <string>

#include "../core/error.hpp"
#include "collective_call.hpp"
#include "request.hpp"
#include "span_of.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Derived has engine(), rank(), size(), and `reduces<T, Op>`. N is the number of ranks and B the bytes of the span below.
template <class Derived, DeviceTag Device> class Collectives {
 public:
  using device = Device;

  /// Returns when every rank has come here. Blocking; moves no data.
  void barrier() { run(barrier_call()); }

  /// Copies root's values into every rank's span. Blocking; B bytes to each rank; deterministic.
  template <SpanLike R> void broadcast(R&& data, int root = 0) { run(broadcast_call(span_of<Device>(data), root)); }
  /// Starts a broadcast(): poll or wait for the request.
  template <SpanLike R> auto start_broadcast(R&& data, int root = 0) {
    return start(broadcast_call(span_of<Device>(data), root));
  }

  /// Every rank's span becomes the reduction over all ranks, in place. Blocking; 2 (N - 1) / N B bytes in and out of each rank;
  /// deterministic, in the communicator's order of the ranks.
  template <SpanLike R, class Op = Sum> void all_reduce(R&& data, Op op = {}) { run(all_reduce_call(span_of<Device>(data), op)); }
  /// Starts an all_reduce(). All ranks start their collectives in the same order. The engine works within poll and wait only.
  template <SpanLike R, class Op = Sum> auto start_all_reduce(R&& data, Op op = {}) {
    return start(all_reduce_call(span_of<Device>(data), op));
  }

  /// Root's span becomes the reduction over all ranks; the others keep theirs. Blocking; deterministic.
  template <SpanLike R, class Op = Sum> void reduce(R&& data, Op op = {}, int root = 0) {
    CollectiveCall o = all_reduce_call(span_of<Device>(data), op);
    o.signature.kind = Collective::Reduce;
    o.signature.root = checked_rank(root, "reduce");
    run(o);
  }

  /// Rank r gets the reduction of the r-th piece: send holds N pieces of recv.size values. Blocking; (N - 1) / N of the sent
  /// bytes leave each rank; deterministic. recv may be this rank's piece of send.
  template <SpanLike R, SpanLike Q, class Op = Sum> void reduce_scatter(R&& send, Q&& recv, Op op = {}) {
    run(reduce_scatter_call(span_of<Device>(send), span_of<Device>(recv), op, {}));
  }
  template <SpanLike R, SpanLike Q, class Op = Sum> auto start_reduce_scatter(R&& send, Q&& recv, Op op = {}) {
    return start(reduce_scatter_call(span_of<Device>(send), span_of<Device>(recv), op, {}));
  }
  /// Does what reduce_scatter() does, with a piece of counts[r] values for rank r.
  template <SpanLike R, SpanLike Q, class Op = Sum>
  void reduce_scatter_v(R&& send, std::span<const std::size_t> counts, Q&& recv, Op op = {}) {
    run(reduce_scatter_call(span_of<Device>(send), span_of<Device>(recv), op, counts));
  }
  /// Starts a reduce_scatter_v(); counts must stay where they are until it is done.
  template <SpanLike R, SpanLike Q, class Op = Sum>
  auto start_reduce_scatter_v(R&& send, std::span<const std::size_t> counts, Q&& recv, Op op = {}) {
    return start(reduce_scatter_call(span_of<Device>(send), span_of<Device>(recv), op, counts));
  }

  /// Every rank gets the pieces of all ranks, in their order: recv holds N pieces of send.size values. Blocking; (N - 1) / N of
  /// recv's bytes come in; deterministic. send may be this rank's piece of recv.
  template <SpanLike R, SpanLike Q> void all_gather(R&& send, Q&& recv) {
    run(all_gather_call(span_of<Device>(send), span_of<Device>(recv), {}));
  }
  template <SpanLike R, SpanLike Q> auto start_all_gather(R&& send, Q&& recv) {
    return start(all_gather_call(span_of<Device>(send), span_of<Device>(recv), {}));
  }
  /// Does what all_gather() does, with a piece of counts[r] values from rank r.
  template <SpanLike R, SpanLike Q> void all_gather_v(R&& send, std::span<const std::size_t> counts, Q&& recv) {
    run(all_gather_call(span_of<Device>(send), span_of<Device>(recv), counts));
  }

  /// Rank r's s-th piece goes to rank s's r-th place; both spans hold N equal pieces and must not overlap. Blocking;
  /// (N - 1) / N B bytes in and out; deterministic.
  template <SpanLike R, SpanLike Q> void all_to_all(R&& send, Q&& recv) {
    const auto from = span_of<Device>(send);
    const auto to = span_of<Device>(recv);
    check_types(from, to);
    if (from.size != to.size || from.size % ranks() != 0)
      throw ArgumentError(
          text("all_to_all: both spans must hold one piece a rank, that is {} equal pieces; they hold {} and {} values", ranks(),
               from.size, to.size));
    run(make(Collective::AllToAll, from.data, to.data, from.size / ranks()));
  }

  /// Works on started calls without waiting.
  void progress() { engine().progress(); }

 protected:
  Derived& self() { return static_cast<Derived&>(*this); }
  auto& engine() { return self().engine(); }
  std::size_t ranks() { return static_cast<std::size_t>(self().size()); }
  int checked_rank(int r, const char* call) {
    if (r < 0 || r >= self().size()) throw_no_rank(r, {call, self().rank(), self().size()});
    return r;
  }
  void run(const CollectiveCall& o) { engine().run(o); }
  auto start(const CollectiveCall& o) { return Request<typename Derived::engine_type>(engine(), engine().start(o)); }

  template <class T> static CollectiveCall make(Collective kind, const T* send, T* recv, std::size_t count) {
    static_assert(Transportable<T>, "what travels between ranks must be trivially copyable: serialise it first");
    CollectiveCall o;
    o.signature = {kind, scalar_code<T>(), 0, InPublicCall::next(), 0, sizeof(T), count, 0};
    o.send = send;
    o.recv = recv;
    return o;
  }
  static CollectiveCall barrier_call() {
    CollectiveCall o;
    o.signature.within = InPublicCall::next();
    return o;
  }
  template <class T, class U> static void check_types(DeviceSpan<T, Device>, DeviceSpan<U, Device>) {
    static_assert(std::is_same_v<std::remove_const_t<T>, U>,
                  "both spans of a collective must have the same type of value, and the second be writable");
  }

 private:
  template <class T> CollectiveCall broadcast_call(DeviceSpan<T, Device> data, int root) {
    CollectiveCall o = make(Collective::Broadcast, data.data, data.data, data.size);
    o.signature.root = checked_rank(root, "broadcast");
    return o;
  }
  template <class T, class Op> static void set_reduction(CollectiveCall& o, const Op& op) {
    constexpr bool known = Derived::template reduces<T, Op>;
    (void)sizeof(comm::reduces<known, alignof(T)>);
    if constexpr (known) {
      o.signature.reduction = reduction_code<Op>();
      o.fold = &fold<T, Op>;
      if constexpr (std::is_same_v<Op, Mean>) o.pair = &fold<T, Sum>, o.finish = &finish_mean<T>;
      else o.pair = o.fold;
      std::memcpy(o.functor, &op, sizeof op);
    }
  }
  template <class T, class Op> CollectiveCall all_reduce_call(DeviceSpan<T, Device> data, const Op& op) {
    CollectiveCall o = make(Collective::AllReduce, data.data, data.data, data.size);
    set_reduction<T>(o, op);
    return o;
  }
  void set_counts(CollectiveCall& o, const char* call, std::size_t whole, std::size_t part, std::span<const std::size_t> counts) {
    comm::set_counts(o, {call, self().rank(), self().size()}, whole, part, counts);
  }
  template <class T, class U, class Op> CollectiveCall reduce_scatter_call(DeviceSpan<T, Device> send, DeviceSpan<U, Device> recv,
                                                                           const Op& op, std::span<const std::size_t> counts) {
    check_types(send, recv);
    CollectiveCall o = make<U>(Collective::ReduceScatter, send.data, recv.data, 0);
    set_counts(o, "reduce_scatter", send.size, recv.size, counts);
    set_reduction<U>(o, op);
    return o;
  }
  template <class T, class U>
  CollectiveCall all_gather_call(DeviceSpan<T, Device> send, DeviceSpan<U, Device> recv, std::span<const std::size_t> counts) {
    check_types(send, recv);
    CollectiveCall o = make<U>(Collective::AllGather, send.data, recv.data, 0);
    set_counts(o, "all_gather", recv.size, send.size, counts);
    return o;
  }
};

}  // namespace skein::inline SKEIN_ABI::comm
