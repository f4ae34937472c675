// SPDX-License-Identifier: Apache-2.0
// The engine of one NcclComm rank: collectives on a stream of their own, between events of the caller's stream, so that they run
// beside what the caller goes on to compute. The coordinator's client watches what runs: NCCL's own errors and calls that take
// longer than the deadline end all ranks, with the rank named, and ncclCommAbort ends what waits on the device. The host blocks
// nowhere but in the start, where 64 calls are in flight, and at the end.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "../control/control_comm.hpp"
#include "../control/watch.hpp"
#include "../request.hpp"
#include "calls.hpp"
#include "calls_in_flight.hpp"
#include "captured_calls.hpp"
#include "handle.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// One rank of NcclComm: its collectives in flight on a stream of their own, watched by the coordinator's client.
class NcclEngine final : public control::Watched {
  using Lock = NcclHandle::Lock;
  using Call = CallsInFlight::Call;

 public:
  /// Collective over the control's ranks, each of which has a device of its own.
  NcclEngine(ControlComm& control, Cuda device, const NcclOptions& options)
      : NcclEngine(control, device, options, nullptr, 0, 0) {}
  /// The ranks of a colour of `parent`; `control` is the part's already.
  NcclEngine(ControlComm& control, NcclEngine& parent, int color, int key)
      : NcclEngine(control, parent.device_, parent.options_, &parent, color, key) {
    ranks_share_process_ = parent.ranks_share_process_;
  }
  ~NcclEngine() override {
    if (!failed()) drain();
    client_->remove(this);
    const Lock lock(handle_.mutex());
    graphs_.release();
    handle_.release(lock, calls_.watch().failed());
  }

  Cuda device() const { return device_; }
  ncclComm_t native() const { return handle_.get(); }
  cudaStream_t stream() const { return stream_.get(); }
  /// Graphs that live and have calls of this communicator in them.
  std::size_t graphs() {
    const Lock lock(handle_.mutex());
    return graphs_.count();
  }
  bool failed() const { return client_->failed(); }
  /// Some of the ranks (not: of this rank's process alone, since all capture or none) are threads of one process.
  void set_ranks_share_process(bool shared) { ranks_share_process_ = shared; }
  bool may_capture() const { return !ranks_share_process_ || options_.capture_in_one_process; }
  void check_alive() const { client_->check(); }

  void run(const CollectiveCall& o) {
    Ticket t = start(o);
    wait(t);
  }
  Ticket start(const CollectiveCall& o) {
    if (options_.check && !cuda::is_capturing(device_)) compare_calls(*control_, o.signature, calls_.count());
    return launch(o.signature, [&] { NcclCalls{handle_.get(), stream_.get(), size_}(o); });
  }
  Ticket start_send(const void* data, std::size_t bytes, int to, int) {
    return launch(
        message_signature(bytes, to),
        [&] { check_nccl(ncclSend(data, bytes, ncclUint8, to, handle_.get(), stream_.get()), "ncclSend"); },
        "a message to another rank");
  }
  Ticket start_recv(void* data, std::size_t bytes, int from, int) {
    if (from < 0) throw ArgumentError("recv: NCCL receives from a rank that is named; any_rank is for communicators of the host");
    Ticket t = launch(
        message_signature(bytes, from),
        [&] { check_nccl(ncclRecv(data, bytes, ncclUint8, from, handle_.get(), stream_.get()), "ncclRecv"); },
        "a message from another rank");
    t.peer = from;
    return t;
  }
  /// What the calling thread's stream was given so far counts as one call: a replayed step.
  void watch_stream(const char* name) {
    client_->check();
    const std::uint64_t number = calls_.count();
    Call& c = next_call(false);
    {
      const Lock lock(handle_.mutex());
      c.end.record(cuda::stream(device_));
      c.captured = false;
      c.recorded = true;
      calls_.start(number, {}, name);
    }
    client_->poke();
  }

  /// Started calls become one launch at the end of the scope.
  void begin_group() {
    client_->check();
    if (grouped_++ > 0) return;
    group_first_ = calls_.count();
    check_nccl(ncclGroupStart(), "ncclGroupStart");
  }
  void end_group() {
    if (--grouped_ > 0) return;
    try {
      Lock lock(handle_.mutex());
      const ncclResult_t status = ncclGroupEnd();
      handle_.wait(lock, status, "ncclGroupEnd", {});
    } catch (const Error& e) {
      tell(e);
      client_->check();
      throw;
    }
    for (; group_first_ < calls_.count(); ++group_first_) finish_launch(calls_[group_first_]);
  }
  /// An exception left the group. Its calls are launched all the same: other ranks may wait for them. The caller's stream waits
  /// for them, since the exception may release their arrays.
  void drop_group() noexcept {
    try {
      const std::uint64_t first = group_first_;
      end_group();
      for (std::uint64_t call = first; grouped_ == 0 && call < calls_.count(); ++call)
        calls_[call].end.hold(cuda::stream(device_));
    } catch (...) {  // the communicator has failed; its next call says so
    }
  }

  void progress() { client_->check(); }
  bool test(Ticket& t) {
    client_->check();
    if (cuda::is_capturing(device_)) return false;  // nothing runs yet
    if (calls_.reused(t)) return true;
    const Call& c = calls_[t.number - 1];
    return c.recorded && (c.captured || c.end.done());
  }
  void wait(Ticket& t) {
    client_->check();
    if (calls_.reused(t)) return hold_newest();
    if (grouped_ > 0 && t.number > group_first_) throw ArgumentError("a call of a group is waited for once the group has ended");
    calls_[t.number - 1].end.hold(cuda::stream(device_));
  }
  void abandon() {}  // the communicator's destructor tells the others

  // ---- of the client's thread
  std::uint64_t started() override {
    const Lock lock(handle_.mutex(), std::chrono::milliseconds(100));
    return calls_.watch().started();
  }
  std::uint32_t group() const override { return group_; }
  bool tick() override {
    try {
      client_->check_group(group_);
    } catch (const CommError& e) { return client_->fail(e.what()), false; }  // of a part: values of the host that do not match
    ask_events_from_here(device_);
    std::string wrong;
    {
      const Lock lock(handle_.mutex(), std::try_to_lock);
      if (!lock) return true;
      if (calls_.watch().failed() || !handle_.get()) return false;
      try {
        calls_.finish_done();
        if (!calls_.watch().running()) return false;
        const ncclResult_t state = handle_.state(lock);
        if (state != ncclSuccess && state != ncclInProgress)
          wrong = nccl_text(state, "NCCL", calls_.watch().waits_in(), handle_.get());
        else if (const auto late = calls_.overdue(client_->deadline()))
          client_->report_overdue(group_, late->call, client_->deadline(), late->what);
      } catch (const Error& e) { wrong = e.what(); }
    }
    if (!wrong.empty()) client_->fail(name() + ": " + wrong);
    return wrong.empty();
  }
  void abort(const std::string& verdict) override {
    const Lock lock(handle_.mutex(), std::chrono::seconds(1));  // a call that hangs inside NCCL has it: abort frees that call
    if (!calls_.watch().fail(verdict) || !handle_.get()) return;
    ncclComm_t gone = handle_.take(lock);
    if (!has_captured_) return void(ncclCommAbort(gone));
    // It returns when the graphs are gone, whose owner may be waiting for this thread.
    std::thread([gone, device = device_] {
      (void)cudaSetDevice(device.ordinal);
      (void)ncclCommAbort(gone);
    }).detach();
  }

 private:
  NcclEngine(ControlComm& control, Cuda device, const NcclOptions& options, NcclEngine* parent, int color, int key)
      : options_(options), device_((cuda::use(device), device)), client_(control.engine().shared_client()), control_(&control),
        group_(control.engine().group()), size_(control.size()), handle_(client_) {
    try {
      handle_.make(control, options, parent ? &parent->handle_ : nullptr, color, key);
    } catch (const Error& e) {
      tell(e);
      throw;
    }
    client_->add(this);
  }

  /// Waits for a call whose place another one has taken by now: next_call() has seen it done. But while a stream captures
  /// nothing is done, and the stream waits for the newest call of that capture, which comes behind all others.
  void hold_newest() {
    const auto graph = cuda::CapturedGraph::being_captured();
    const std::uint64_t calls = grouped_ > 0 ? group_first_ : calls_.count();
    if (graph && calls > 0 && last_captured_.lock() == graph && calls_[calls - 1].captured)
      calls_[calls - 1].end.hold(cuda::stream(device_));
  }
  std::string name() const { return control_->engine().rank_names().name(control_->rank()); }
  /// What goes wrong on this rank ends all.
  void tell(const Error& e) {
    if (!client_->failed()) client_->fail(name() + ": " + e.what());
  }

  /// Until nothing runs, or the communicator has failed.
  void drain() noexcept {
    try {
      while (!client_->failed()) {
        {
          const Lock lock(handle_.mutex());
          calls_.finish_done();
          if (!calls_.watch().running()) return;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    } catch (const Error& e) {  // the device has failed
      tell(e);
    }
  }
  /// The place of the next call, once the one that has it is done. While a stream captures, the watching thread alone may ask
  /// events.
  Call& next_call(bool captured) {
    Call& c = calls_.next();
    while (!c.captured) {
      client_->check();
      {
        const Lock lock(handle_.mutex());
        if (!captured) calls_.finish_done();
        if (calls_.watch().oldest() > c.watched) break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    calls_.take_next();
    return c;
  }
  template <class Give> Ticket launch(const Signature& what, Give&& give, const char* name = nullptr) {
    client_->check();
    if (grouped_ > 0 && calls_.count() - group_first_ >= CallsInFlight::most - 1)
      throw ArgumentError(text("a group of NCCL calls may hold {}", CallsInFlight::most - 1));
    const bool captured = cuda::is_capturing(device_);
    if (captured) check_capture(may_capture());
    const std::uint64_t number = calls_.count();
    Call& c = next_call(captured);
    try {
      c.begin.record(cuda::stream(device_));
      c.begin.hold(stream_.get());
      Lock lock(handle_.mutex());
      handle_.check_alive(lock);
      if (captured) has_captured_ = true, graphs_.note(), last_captured_ = cuda::CapturedGraph::being_captured();
      c.captured = captured;
      c.recorded = false;
      if (!captured) calls_.start(number, what, name);
      give();
      if (grouped_ > 0) return {number + 1, -1, -1};
      handle_.wait(lock, ncclSuccess, name ? name : "a launch", name ? "" : describe(what));
    } catch (const Error& e) {
      tell(e);
      client_->check();
      throw;
    }
    finish_launch(c);
    return {number + 1, -1, -1};
  }
  void finish_launch(Call& c) {
    {
      const Lock lock(handle_.mutex());
      c.end.record(stream_.get());
      c.recorded = true;
    }
    if (!c.captured) client_->poke();
  }

  NcclOptions options_;
  Cuda device_;
  std::shared_ptr<control::Client> client_;
  ControlComm* control_;
  std::uint32_t group_;
  int size_;
  bool ranks_share_process_ = false;
  cuda::Stream stream_;
  std::uint64_t group_first_ = 0;  // the first call of the open group
  int grouped_ = 0;
  std::weak_ptr<cuda::CapturedGraph::Executable> last_captured_;  // where the newest captured call is
  NcclHandle handle_;                                             // its lock is that of what follows too
  CallsInFlight calls_;
  CapturedCalls graphs_;
  std::atomic<bool> has_captured_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm
