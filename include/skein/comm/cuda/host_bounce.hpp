// SPDX-License-Identifier: Apache-2.0
// HostBounce<Host>: collectives of GPU memory over a communicator of the host, through page-locked memory: for an MPI that knows
// nothing of GPUs, and for machines without NCCL. Only who writes this type gets it; nothing chooses it in silence.
#pragma once
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "../../core/flag_within.hpp"
#include "../../device/cuda/pinned.hpp"
#include "../../device/cuda/stream.hpp"
#include "../call_ring.hpp"
#include "../launch/local_devices.hpp"
#include "../concepts.hpp"
#include "../messages.hpp"
#include "../progress.hpp"
#include "../queries.hpp"

namespace skein::inline SKEIN_ABI {

namespace comm {
/// Each call: a copy to the host on a stream of its own behind what the caller's stream was given before; the host's collective
/// once that copy is done; a copy back, which the caller's stream waits for. The middle moves within poll and wait, and those
/// of other communicators of the thread, in the order of the calls.
template <class Host> class HostBounceEngine final : Progress {
 public:
  HostBounceEngine(Host& host, Cuda device) : host_(&host), device_((cuda::use(device), device)) {}
  ~HostBounceEngine() { leave_thread(); }

  Cuda device() const { return device_; }

  void run(const CollectiveCall& o) {
    Ticket t = start(o);
    wait(t);
  }
  Ticket start(const CollectiveCall& o) {
    const int rank = host_->rank(), ranks = host_->size();
    Call& c = begin(o.sent_bytes(rank, ranks), o.send, o.received_bytes(rank, ranks), o.recv);
    c.operation = o;
    const Collective kind = o.signature.kind;
    const bool in_place = kind == Collective::AllReduce || kind == Collective::Reduce || kind == Collective::Broadcast;
    c.operation.send = c.in.data();
    c.operation.recv = in_place ? c.in.data() : c.out.data();
    if (in_place) c.back.from = c.in.data();
    progress();
    return {calls_.started(), -1, -1};
  }
  Ticket start_send(const void* data, std::size_t bytes, int to, int tag) {
    return message(true, const_cast<void*>(data), bytes, to, tag);
  }
  Ticket start_recv(void* data, std::size_t bytes, int from, int tag) { return message(false, data, bytes, from, tag); }

  /// Starts what the host may start, and copies back what has come.
  void progress() {
    check();
    guarded([&] { advance(); });
  }
  /// True once the values are on their way back, and have arrived.
  bool test(Ticket& t) {
    progress();
    if (old(t)) return true;
    Call& c = calls_[t.number - 1];
    if (c.phase != Phase::Done) return false;
    if (t.message == 0) t.peer = c.ticket.peer;
    return c.arrived.done();
  }
  /// The host waits for the host's part; the caller's stream for the copy back.
  void wait(Ticket& t) {
    called();
    if (old(t)) return;
    Call& c = calls_[t.number - 1];
    if (failure_ && c.phase != Phase::Done) std::rethrow_exception(failure_);
    // The later ones too, now: another rank may wait for a message of theirs before it comes to what is waited for here.
    give_all();
    // Others that were started before go on meanwhile: the host's engine moves all of its calls in one wait.
    if (c.phase == Phase::OnHost) {
      guarded([&] {
        host_->engine().wait(c.ticket);
        bring_back(c);
      });
    }
    if (t.message == 0) t.peer = c.ticket.peer;
    c.arrived.hold(cuda::stream(device_));
    if (!failure_) progress();
  }
  /// The host has all calls that were started before, once their copies are done: its own calls come behind them on each rank.
  void give_all() {
    called();
    if (failure_) return;
    guarded([&] {
      for (std::uint64_t n = calls_.complete(); n < calls_.started(); ++n) {
        Call& c = calls_[n];
        if (c.phase != Phase::Copying) continue;
        c.copied.synchronize();
        give(c);
      }
    });
  }
  void abandon() {
    called_to_end();
    end(std::make_exception_ptr(CommError(abandoned_text(names_of(*host_), host_->rank()))));
  }

 private:
  /// What is on its way back arrives by itself.
  bool under_way() const override { return !calls_.empty() && !within_ && !failure_; }
  bool move_on() override {
    const std::uint64_t complete = calls_.complete();
    progress();
    return calls_.complete() > complete;
  }

  enum class Phase { Done, Copying, OnHost };
  void advance() {
    for (std::uint64_t n = calls_.complete(); n < calls_.started(); ++n) {
      Call& c = calls_[n];
      if (c.phase == Phase::Copying) {
        if (!c.copied.done() || (starts_by_waiting<typename Host::engine_type> && moving())) break;  // later ones later: in order
        give(c);
      }
      if (c.phase == Phase::OnHost && host_->engine().test(c.ticket)) bring_back(c);
    }
    while (!calls_.empty() && calls_.oldest().phase == Phase::Done) calls_.pop();
  }
  /// In each call, but for wait(): one that is done is over.
  void check() {
    called();
    if (failure_) std::rethrow_exception(failure_);
  }
  /// What is thrown within ends the communicator, and each call that is under way says it: what was asked for may be another one.
  template <class F> void guarded(const F& f) {
    const skein::detail::FlagWithin within(within_, true);
    try {
      f();
    } catch (...) {
      end(std::current_exception());
      throw;
    }
  }
  void end(std::exception_ptr why) {
    if (failure_) return;
    failure_ = std::move(why);
    for (std::uint64_t n = calls_.complete(); n < calls_.started(); ++n) (void)cudaEventSynchronize(calls_[n].copied.get());
    host_->engine().abandon();
  }
  struct Back {
    void* to = nullptr;
    std::size_t bytes = 0;
    const void* from = nullptr;
  };
  struct Call {
    Phase phase = Phase::Done;
    bool sends = false, receives = false;  // a message
    int peer = 0, tag = 0;
    std::size_t bytes = 0;
    CollectiveCall operation{};
    Ticket ticket{};
    Back back{};
    cuda::Pinned<char> in, out;
    cuda::Event before, copied, arrived;
  };
  bool old(const Ticket& t) const { return t.number == 0 || t.number + calls_.room <= calls_.started(); }

  Call& begin(std::size_t send, const void* from, std::size_t recv, void* to) {
    check();
    while (calls_.full()) {
      Ticket first{calls_.complete() + 1, -1, -1};
      wait(first);
    }
    Call& c = calls_.next();
    if (calls_.started() >= calls_.room) c.arrived.synchronize();  // its memory is on its way to the device
    calls_.push();
    if (c.in.size() < send) c.in = cuda::Pinned<char>(send);
    if (c.out.size() < recv) c.out = cuda::Pinned<char>(recv);
    c.back = {to, recv, c.out.data()};
    c.sends = c.receives = false;
    c.before.record(cuda::stream(device_));
    c.before.hold(stream_.get());
    if (send)
      cuda::check(cudaMemcpyAsync(c.in.data(), from, send, cudaMemcpyDeviceToHost, stream_.get()), "cudaMemcpyAsync (staging)",
                  cuda::Bytes{send});
    c.copied.record(stream_.get());
    c.phase = Phase::Copying;
    return c;
  }
  Ticket message(bool sends, void* data, std::size_t bytes, int peer, int tag) {
    Call& c = begin(sends ? bytes : 0, data, sends ? 0 : bytes, data);
    c.sends = sends;
    c.receives = !sends;
    c.peer = peer;
    c.tag = tag;
    c.bytes = bytes;
    progress();
    return {calls_.started(), 0, peer};
  }
  void give(Call& c) {
    auto& engine = host_->engine();
    c.ticket = c.sends      ? engine.start_send(c.in.data(), c.bytes, c.peer, c.tag)
               : c.receives ? engine.start_recv(c.out.data(), c.bytes, c.peer, c.tag)
                            : engine.start(c.operation);
    c.phase = Phase::OnHost;
  }
  void bring_back(Call& c) {
    if (c.back.bytes)
      cuda::check(cudaMemcpyAsync(c.back.to, c.back.from, c.back.bytes, cudaMemcpyHostToDevice, stream_.get()),
                  "cudaMemcpyAsync (staging)", cuda::Bytes{c.back.bytes});
    c.arrived.record(stream_.get());
    c.phase = Phase::Done;
  }

  Host* host_;
  Cuda device_;
  cuda::Stream stream_;
  CallRing<Call> calls_;  // complete: on its way back
  bool within_ = false;   // its own work: where an engine that it is made of waits, this one is not moved
  std::exception_ptr failure_;
};
}  // namespace comm

/// A rank with a GPU over a communicator of the host, which must outlive it: `HostBounce world{mpi}`. The same collectives and
/// messages as the host's, a user's own reductions too (they run on the host), the same order of summation. Every value crosses
/// to the host and back: B bytes each way beside what the host's communicator moves. Not capturable.
template <class Host> class HostBounce : public comm::Messages<HostBounce<Host>, Cuda>,
                                         public comm::ForwardsTo<Host, comm::Capability::shares> {
  static_assert((assert_communicator<Host, Cpu>(), true));

 public:
  static constexpr std::string_view name = "HostBounce";
  using engine_type = comm::HostBounceEngine<Host>;
  template <class T, class Op> static constexpr bool reduces = Host::template reduces<T, Op>;
  static constexpr comm::Capabilities capabilities = comm::ForwardsTo<Host, comm::Capability::shares>::capabilities |
                                                     comm::Capabilities{comm::Capability::devices, comm::Capability::splits};

  explicit HostBounce(Host& host, Cuda device)
      : comm::ForwardsTo<Host, comm::Capability::shares>(host), engine_(std::make_unique<engine_type>(host, device)) {}
  /// On the GPU of this rank's place on its machine, modulo the visible ones.
  explicit HostBounce(Host& host)
      : HostBounce(host, Cuda{comm::launch::device_of(comm::node_rank(host), cuda::device_count())}) {}

  int rank() const { return this->inner().rank(); }
  int size() const { return this->inner().size(); }
  Cuda where() const { return engine_->device(); }
  /// Returns when every rank has come here: a barrier of the hosts, behind what was started before. It waits for no other kernel.
  void barrier() { control().barrier(); }
  /// A communicator of the ranks with this colour (0 or more), ordered by key, then by rank. Collective; blocking.
  HostBounce split(int color, int key = 0) {
    return HostBounce(std::make_unique<Host>(control().split(color, key)), engine_->device());
  }

  /// The communicator of the host over the same ranks: spans of the host go there, behind what was started here before.
  Host& control() {
    engine_->give_all();
    return this->inner();
  }
  engine_type& engine() { return *engine_; }

 private:
  HostBounce(std::unique_ptr<Host> own, Cuda device)
      : comm::ForwardsTo<Host, comm::Capability::shares>(*own), own_(std::move(own)),
        engine_(std::make_unique<engine_type>(*own_, device)) {}

  std::unique_ptr<Host> own_;  // of a part
  std::unique_ptr<engine_type> engine_;
};

}  // namespace skein::inline SKEIN_ABI
