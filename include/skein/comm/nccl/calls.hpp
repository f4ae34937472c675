// SPDX-License-Identifier: Apache-2.0
// Which calls of NCCL make a collective. Parts of unequal sizes, and all-to-all, are several calls in a group, which NCCL runs
// as one. And the look beforehand whether all ranks make the same call.
#pragma once
#include <cstddef>
#include <vector>

#include "../control/control_comm.hpp"
#include "../work.hpp"
#include "status.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What a message to or from a rank is called in reports.
inline Signature message_signature(std::size_t bytes, int peer) { return {Collective::AllToAll, 4, 0, 0, peer, 1, bytes, 0}; }

/// Compares what the ranks are about to call, on the host, before NCCL sees it. Where they differ, the communicator fails and all
/// of them throw CommError.
inline void compare_calls(ControlComm& control, const Signature& own, unsigned long long number) {
  std::vector<Signature> all(static_cast<std::size_t>(control.size()));
  control.all_gather(DeviceSpan<const Signature, Cpu>(&own, 1), DeviceSpan<Signature, Cpu>(all.data(), all.size()));
  const auto client = control.engine().shared_client();
  for (const Signature& s : all)
    if (!(s == own)) {
      client->fail(mismatch_text(number, control.engine().rank_names(), [&](int r) { return all[static_cast<std::size_t>(r)]; }));
      client->check();
    }
}

/// Gives collectives of a communicator to NCCL, on a stream. Every call returns at once; throws CommError where NCCL refuses.
struct NcclCalls {
  ncclComm_t comm;
  cudaStream_t stream;
  int size;  ///< ranks

  void operator()(const CollectiveCall& o) const {
    const Signature& s = o.signature;
    if (s.count == 0) return;  // nobody has anything
    switch (s.kind) {
      case Collective::Barrier:
        return;  // of the host
      case Collective::Broadcast:
        return check(ncclBroadcast(o.send, o.recv, o.bytes(s.count), ncclUint8, s.root, comm, stream), "ncclBroadcast", s);
      case Collective::AllReduce:
        return check(ncclAllReduce(o.send, o.recv, s.count, nccl_type(s.scalar), nccl_reduction(s.reduction), comm, stream),
                     "ncclAllReduce", s);
      case Collective::Reduce:
        return reduce(o.send, o.recv, s.count, s.root, s);
      case Collective::ReduceScatter:
        if (o.counts) return reduce_parts(o);
        return check(ncclReduceScatter(o.send, o.recv, s.count, nccl_type(s.scalar), nccl_reduction(s.reduction), comm, stream),
                     "ncclReduceScatter", s);
      case Collective::AllGather:
        if (o.counts) return gather_parts(o);
        return check(ncclAllGather(o.send, o.recv, o.bytes(s.count), ncclUint8, comm, stream), "ncclAllGather", s);
      case Collective::AllToAll:
        return exchange_parts(o);
    }
  }

 private:
  static void check(ncclResult_t status, const char* name, const Signature& s) {
    check_nccl(status, name, status == ncclSuccess || status == ncclInProgress ? "" : describe(s));
  }
  void reduce(const void* from, void* to, std::size_t count, int root, const Signature& s) const {
    check(ncclReduce(from, to, count, nccl_type(s.scalar), nccl_reduction(s.reduction), root, comm, stream), "ncclReduce", s);
  }
  void reduce_parts(const CollectiveCall& o) const {
    together([&] {
      for (int r = 0; r < size; ++r)
        if (const Piece p = o.piece(r); p.count) reduce(o.from() + o.bytes(p.offset), o.recv, p.count, r, o.signature);
    });
  }
  void gather_parts(const CollectiveCall& o) const {
    together([&] {
      for (int r = 0; r < size; ++r)
        if (const Piece p = o.piece(r); p.count)
          check(ncclBroadcast(o.send, o.into() + o.bytes(p.offset), o.bytes(p.count), ncclUint8, r, comm, stream),
                "ncclBroadcast", o.signature);
    });
  }
  void exchange_parts(const CollectiveCall& o) const {
    together([&] {
      for (int r = 0; r < size; ++r) {
        const Piece p = o.piece(r);
        check(ncclSend(o.from() + o.bytes(p.offset), o.bytes(p.count), ncclUint8, r, comm, stream), "ncclSend", o.signature);
        check(ncclRecv(o.into() + o.bytes(p.offset), o.bytes(p.count), ncclUint8, r, comm, stream), "ncclRecv", o.signature);
      }
    });
  }
  /// Several calls of NCCL as one.
  template <class Calls> static void together(Calls&& calls) {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    try {
      calls();
    } catch (...) {
      (void)ncclGroupEnd();
      throw;
    }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  }
};

}  // namespace skein::inline SKEIN_ABI::comm
