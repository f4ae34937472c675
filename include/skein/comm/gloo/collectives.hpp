// SPDX-License-Identifier: Apache-2.0
// Collectives over gloo's connections, by a thread of their own, one after the other: first the ranks compare what they call,
// then slices go to the ranks that reduce them, in the order of the ranks, and the results to those that want them. An
// all-reduce moves 2 (N - 1) / N times its bytes in and out of a rank, as over a ring, with the bits of every other transport;
// the root of a broadcast sends all its bytes N - 1 times, and that of a reduce receives them as an all-reduce does.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <thread>

#include "../call_ring.hpp"
#include "../work.hpp"
#include "mesh.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// The queue of calls of one rank, and who works on it.
class GlooCollectives {
 public:
  /// By the thread, once, where a call cannot be carried out: the call, why, and the rank whose connection has ended, or -1.
  using Failed = std::function<void(const std::string& call, const std::string& why, int ended)>;
  GlooCollectives(GlooMesh& mesh, Failed failed)
      : mesh_(mesh), failed_(std::move(failed)), signatures_(static_cast<std::size_t>(mesh.size())), came_(signatures_.size()),
        pointers_(mesh.size()), thread_([this] { work(); }) {}
  GlooCollectives(const GlooCollectives&) = delete;
  GlooCollectives& operator=(const GlooCollectives&) = delete;
  ~GlooCollectives() { stop(); }

  /// Adds a call, once there is room; returns its number, which complete() reaches.
  std::uint64_t push(const CollectiveCall& o) {
    const std::lock_guard lock(mutex_);
    calls_.next() = o;
    changed_.notify_all();
    return calls_.push();
  }
  std::uint64_t complete() {
    const std::lock_guard lock(mutex_);
    return calls_.complete();
  }
  bool full() {
    const std::lock_guard lock(mutex_);
    return calls_.full();
  }
  /// Until the call is complete, at most so long. True where it is.
  bool wait(std::uint64_t number, std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return calls_.complete() >= number || stopping_; }) &&
           calls_.complete() >= number;
  }
  /// Ends the thread: nobody touches a caller's memory any more. After the mesh's abort(), or when nothing is under way.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }
  /// After stop(): what the call under way lacks, within so many seconds.
  std::string missing_text(double limit) {
    const Signature& s = calls_.oldest().signature;
    const std::string within = " within " + seconds_text(limit), text = call_text();
    const auto missing = [&](int r) { return r != mesh_.rank() && !came_[static_cast<std::size_t>(r)]; };
    const std::string ranks = ranks_text(mesh_.names(), missing);
    for (int r = 0; r < mesh_.size(); ++r)
      if (missing(r)) return not_called_text(s, ranks) + text + ranks + " did not arrive" + within;
    return text + "all ranks have arrived, and no message has" + within + ": look at the network";
  }

 private:
  void work() {
    const WithoutPipeSignal for_ever;
    try {
      while (true) {
        std::uint64_t call = 0;
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return stopping_ || !calls_.empty(); });
          if (stopping_) return;
          call = calls_.complete();
        }
        run(calls_[call], call);
        const std::lock_guard lock(mutex_);
        calls_.pop();
        changed_.notify_all();
      }
    } catch (const ConnectionEnded& e) {
      if (!mesh_.aborted()) failed_(call_text(), e.what(), e.peer());
    } catch (const std::exception& e) {
      if (!mesh_.aborted()) failed_(call_text(), e.what(), -1);
    } catch (...) {
      if (!mesh_.aborted()) failed_(call_text(), "an exception that is no std::exception", -1);
    }
  }
  /// Names the call under way, as the beginning of an error message.
  std::string call_text() const {
    return skein::text("{} (call {}): ", describe(calls_.oldest().signature, mesh_.names()), calls_.complete());
  }

  void run(const CollectiveCall& o, std::uint64_t call) {
    slot_ = call * 4;
    compare(o.signature, call);
    switch (o.signature.kind) {
      case Collective::Barrier:
        return;
      case Collective::Broadcast:
        return broadcast(o);
      case Collective::AllReduce:
      case Collective::Reduce:
      case Collective::ReduceScatter:
        return reduce(o);
      case Collective::AllGather:
      case Collective::AllToAll:
        return gather(o);
    }
  }
  /// f(rank) for the others, the next first: not all to the same.
  template <class F> void others(F&& f) {
    for (int d = 1; d < mesh_.size(); ++d) f((mesh_.rank() + d) % mesh_.size());
  }
  void exchange(std::uint64_t phase) {
    mesh_.exchange(slot_ + phase, in_, out_, [](int) {});
    in_.clear();
    out_.clear();
  }
  static void* writable(const void* p) { return const_cast<void*>(p); }

  void compare(const Signature& own, std::uint64_t call) {
    in_.clear();
    out_.clear();
    signatures_[static_cast<std::size_t>(mesh_.rank())] = own;
    std::fill(came_.begin(), came_.end(), false);
    others([&](int q) {
      in_.push_back({q, &signatures_[static_cast<std::size_t>(q)], sizeof own});
      out_.push_back({q, writable(&own), sizeof own});
    });
    mesh_.exchange(slot_, in_, out_, [&](int r) { came_[static_cast<std::size_t>(r)] = true; });
    in_.clear();
    out_.clear();
    for (const Signature& s : signatures_)
      if (!is_known(s) || !(s == own))
        throw CommError(mismatch_text(call, mesh_.names(), [&](int r) { return signatures_[static_cast<std::size_t>(r)]; }));
  }
  void broadcast(const CollectiveCall& o) {
    const std::size_t bytes = o.bytes(o.signature.count);
    if (mesh_.rank() != o.signature.root) in_.push_back({o.signature.root, o.recv, bytes});
    else others([&](int q) { out_.push_back({q, writable(o.send), bytes}); });
    exchange(1);
  }
  Piece slice(const CollectiveCall& o, int r) const {
    if (o.signature.kind == Collective::ReduceScatter) return o.piece(r);
    return slice_of(o.signature.count, o.signature.element, r, mesh_.size());
  }
  void reduce(const CollectiveCall& o) {
    const bool scatters = o.signature.kind == Collective::ReduceScatter, to_all = o.signature.kind == Collective::AllReduce;
    const bool receives = to_all || mesh_.rank() == o.signature.root;
    const Piece own = slice(o, mesh_.rank());
    const std::size_t bytes = o.bytes(own.count);
    const std::size_t stride = bytes / sizeof(Block) + 4;
    if (scratch_.size() < stride * (pointers_.from.size() + 1)) scratch_.resize(stride * (pointers_.from.size() + 1));
    const auto place = [&](int r) { return &scratch_[stride * static_cast<std::size_t>(r)]; };
    others([&](int q) {
      in_.push_back({q, place(q), bytes});
      const Piece c = slice(o, q);
      out_.push_back({q, writable(o.from() + o.bytes(c.offset)), o.bytes(c.count)});
    });
    exchange(1);
    for (int r = 0; r < mesh_.size(); ++r)
      pointers_.from[static_cast<std::size_t>(r)] =
          r == mesh_.rank() ? o.from() + o.bytes(own.offset) : static_cast<void*>(place(r));
    void* const result = scatters ? o.recv : receives ? o.into() + o.bytes(own.offset) : static_cast<void*>(place(mesh_.size()));
    pointers_.to[0] = result;
    if (own.count) o.fold(o.functor, pointers_.to.data(), 1, pointers_.from.data(), mesh_.size(), own.count);
    if (scatters) return;
    others([&](int q) {
      const Piece c = slice(o, q);
      if (receives) in_.push_back({q, o.into() + o.bytes(c.offset), o.bytes(c.count)});
      if (to_all || q == o.signature.root) out_.push_back({q, result, bytes});
    });
    exchange(2);
  }
  void gather(const CollectiveCall& o) {
    const bool to_each = o.signature.kind == Collective::AllToAll;
    const auto part = [&](int r) { return o.from() + (to_each ? o.bytes(o.piece(r).offset) : 0); };
    const std::size_t own = o.bytes(o.piece(mesh_.rank()).count);
    others([&](int q) {
      in_.push_back({q, o.into() + o.bytes(o.piece(q).offset), o.bytes(o.piece(q).count)});
      out_.push_back({q, writable(part(q)), own});
    });
    exchange(1);
    copy_bytes(o.into() + o.bytes(o.piece(mesh_.rank()).offset), part(mesh_.rank()), own);
  }

  GlooMesh& mesh_;
  Failed failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  CallRing<CollectiveCall> calls_;
  bool stopping_ = false;
  // The thread's.
  std::uint64_t slot_ = 0;
  std::vector<GlooMesh::Part> in_, out_;
  std::vector<Signature> signatures_;
  std::vector<bool> came_;
  std::vector<Block> scratch_;
  Pointers pointers_;
  std::thread thread_;
};

}  // namespace skein::inline SKEIN_ABI::comm
