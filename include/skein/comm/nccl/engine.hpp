// SPDX-License-Identifier: Apache-2.0
// The engine of one NcclComm rank: collectives on a stream of their own, between events of the caller's stream, so that they run
// beside what the caller goes on to compute. The coordinator's client watches what runs: NCCL's own errors and calls that take
// longer than the deadline end all ranks, with the rank named, and ncclCommAbort ends what waits on the device. The host blocks
// nowhere but in the start, where 64 calls are in flight, and at the end.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../control/control_comm.hpp"
#include "../control/watch.hpp"
#include "../request.hpp"
#include "calls.hpp"
#include "captured_calls.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// One rank of NcclComm: its collectives in flight on a stream of their own, watched by the coordinator's client.
class NcclEngine final : public control::Watched {
  using Lock = std::unique_lock<std::timed_mutex>;

 public:
  static constexpr std::uint64_t ring = 64;  // calls in flight

  /// Collective over the control's ranks, each of which has a device of its own.
  NcclEngine(ControlComm& control, Cuda device, const NcclOptions& options)
      : NcclEngine(control, device, options, nullptr, 0, 0) {}
  /// The ranks of a colour of `parent`; `control` is the part's already.
  NcclEngine(ControlComm& control, NcclEngine& parent, int color, int key)
      : NcclEngine(control, parent.device_, parent.options_, &parent, color, key) {
    ranks_share_process_ = parent.ranks_share_process_;
  }
  NcclEngine(const NcclEngine&) = delete;
  NcclEngine& operator=(const NcclEngine&) = delete;
  ~NcclEngine() override {
    if (!failed()) drain();
    client_->remove(this);
    const Lock lock(mutex_);
    graphs_.release();
    if (!comm_) return;
    if (!watch_.failed() && finalize()) (void)ncclCommDestroy(comm_);
    else (void)ncclCommAbort(comm_);
    comm_ = nullptr;
  }

  Cuda device() const { return device_; }
  ncclComm_t native() const { return comm_; }
  cudaStream_t stream() const { return stream_.get(); }
  /// Graphs that live and have calls of this communicator in them.
  std::size_t graphs() {
    const Lock lock(mutex_);
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
    if (options_.check) compare(o.signature);
    return launch(o.signature, [&] { NcclCalls{comm_, stream_.get(), size_}(o); });
  }
  Ticket start_send(const void* data, std::size_t bytes, int to, int) {
    return launch(
        message(bytes, to), [&] { check_nccl(ncclSend(data, bytes, ncclUint8, to, comm_, stream_.get()), "ncclSend"); },
        "a message to another rank");
  }
  Ticket start_recv(void* data, std::size_t bytes, int from, int) {
    if (from < 0) throw ArgumentError("recv: NCCL receives from a rank that is named; any_rank is for communicators of the host");
    Ticket t = launch(
        message(bytes, from), [&] { check_nccl(ncclRecv(data, bytes, ncclUint8, from, comm_, stream_.get()), "ncclRecv"); },
        "a message from another rank");
    t.peer = from;
    return t;
  }
  /// What the calling thread's stream was given so far counts as one call: a replayed step.
  void watch_stream(const char* name) {
    client_->check();
    const std::uint64_t number = tail_;
    Slot& s = next_slot(false);
    {
      const Lock lock(mutex_);
      s.end.record(cuda::stream(device_));
      s.captured = false;
      s.recorded = true;
      s.watched = watch_.start({}, control::now(), name);
      push_running(number);
    }
    client_->poke();
  }

  /// Started calls become one launch at the end of the scope.
  void begin_group() {
    client_->check();
    if (grouped_++ > 0) return;
    group_first_ = tail_;
    check_nccl(ncclGroupStart(), "ncclGroupStart");
  }
  void end_group() {
    if (--grouped_ > 0) return;
    try {
      Lock lock(mutex_);
      const ncclResult_t status = ncclGroupEnd();
      wait_for_nccl(lock, status, "ncclGroupEnd", {});
    } catch (const Error& e) {
      tell(e);
      client_->check();
      throw;
    }
    for (; group_first_ < tail_; ++group_first_) finish_launch(slot(group_first_));
  }
  /// An exception left the group. Its calls are launched all the same: other ranks may wait for them. The caller's stream waits
  /// for them, since the exception may release their arrays.
  void drop_group() noexcept {
    try {
      const std::uint64_t first = group_first_;
      end_group();
      for (std::uint64_t call = first; grouped_ == 0 && call < tail_; ++call) slot(call).end.hold(cuda::stream(device_));
    } catch (...) {  // the communicator has failed; its next call says so
    }
  }

  void progress() { client_->check(); }
  bool test(Ticket& t) {
    client_->check();
    if (capturing()) return false;  // nothing runs yet
    if (reused(t)) return true;
    Slot& s = slot(t.number - 1);
    if (!s.recorded) return false;
    return s.captured || s.end.done();
  }
  void wait(Ticket& t) {
    client_->check();
    if (reused(t)) return hold_newest();
    if (grouped_ > 0 && t.number > group_first_) throw ArgumentError("a call of a group is waited for once the group has ended");
    slot(t.number - 1).end.hold(cuda::stream(device_));
  }
  void abandon() {}  // the communicator's destructor tells the others

  // ---- of the client's thread
  std::uint64_t started() override {
    const Lock lock(mutex_, std::chrono::milliseconds(100));
    return watch_.started();
  }
  std::uint32_t group() const override { return group_; }
  bool tick() override {
    (void)cudaSetDevice(device_.ordinal);          // else the first question makes a context on GPU 0, in every process
    static thread_local const bool relaxed = [] {  // another thread's capture is no reason to refuse an event query
      cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
      return cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
    }();
    (void)relaxed;
    std::string wrong;
    {
      const Lock lock(mutex_, std::try_to_lock);
      if (!lock) return true;
      if (watch_.failed() || !comm_) return false;
      try {
        finish_done();
        if (!watch_.running()) return false;
        ncclResult_t state = ncclSuccess;
        const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
        if (asked != ncclSuccess) state = asked;
        if (state != ncclSuccess && state != ncclInProgress) wrong = nccl_text(state, "NCCL", watch_.waits_in(), comm_);
        else if (const auto late = watch_.overdue(control::now(), client_->deadline()))
          client_->report_overdue(group_, late->call, client_->deadline(), late->what);
      } catch (const Error& e) { wrong = e.what(); }
    }
    if (wrong.empty()) return true;
    client_->fail("rank " + std::to_string(rank_) + ": " + wrong);
    return false;
  }
  void abort(const std::string& verdict) override {
    const Lock lock(mutex_, std::chrono::seconds(1));  // a call that hangs inside NCCL holds it: abort frees that call
    if (!watch_.fail(verdict) || !comm_) return;
    ncclComm_t gone = std::exchange(comm_, nullptr);
    if (!has_captured_) return void(ncclCommAbort(gone));
    // It returns when the graphs are gone, whose owner may be waiting for this thread.
    std::thread([gone, device = device_] {
      (void)cudaSetDevice(device.ordinal);
      (void)ncclCommAbort(gone);
    }).detach();
  }

 private:
  struct Slot {
    cuda::Event begin, end;
    std::uint64_t watched = 0;               // its number in the watch
    bool recorded = false, captured = true;  // captured: nothing of it runs
  };

  NcclEngine(ControlComm& control, Cuda device, const NcclOptions& options, NcclEngine* parent, int color, int key)
      : options_(options), device_((cuda::use(device), device)), client_(control.engine().shared_client()), control_(&control),
        group_(control.engine().group()), rank_(control.rank()), size_(control.size()) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = options.blocking ? 1 : 0;
    try {
      Lock lock(mutex_);
      ncclResult_t status = ncclSuccess;
      const char* call = parent ? "ncclCommSplit" : "ncclCommInitRankConfig";
      if (parent) {
        // The parent first: until it is ready, NCCL has not written the part's handle.
        Lock of_parent(parent->mutex_);
        parent->alive(of_parent);
        status = ncclCommSplit(parent->comm_, color, key, &comm_, &config);
        parent->wait_for_nccl(of_parent, status, call, {}, true);
      } else {
        ncclUniqueId id{};
        if (rank_ == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
        control.broadcast(DeviceSpan<char, Cpu>(id.internal, sizeof id.internal), 0);
        status = ncclCommInitRankConfig(&comm_, size_, id, rank_, &config);
      }
      wait_for_nccl(lock, status, call, "rank " + std::to_string(rank_) + " of " + std::to_string(size_), true);
    } catch (const Error& e) {
      if (comm_) (void)ncclCommAbort(comm_);
      comm_ = nullptr;
      tell(e);
      throw;
    }
    client_->add(this);
  }

  Slot& slot(std::uint64_t call) { return slots_[call % ring]; }
  /// Of a call whose slot is another one's by now: next_slot() has seen it done, but while a stream captures nothing is done, and
  /// the newest call of that capture comes behind all others.
  void hold_newest() {
    const auto graph = cuda::CapturedGraph::being_captured();
    const std::uint64_t calls = grouped_ > 0 ? group_first_ : tail_;
    if (graph && calls > 0 && last_captured_.lock() == graph && slot(calls - 1).captured)
      slot(calls - 1).end.hold(cuda::stream(device_));
  }
  bool reused(const Ticket& t) const { return t.number == 0 || t.number + ring <= tail_; }
  bool capturing() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cuda::check(cudaStreamIsCapturing(cuda::stream(device_), &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }
  static Signature message(std::size_t bytes, int peer) { return {Collective::AllToAll, 4, 0, 0, peer, 1, bytes, 0}; }
  /// What goes wrong on this rank ends all.
  void tell(const Error& e) {
    if (!client_->failed()) client_->fail("rank " + std::to_string(rank_) + ": " + e.what());
  }
  void alive(Lock& lock) {
    if (comm_ && !client_->failed()) return;
    lock.unlock();
    client_->check();
    throw CommError("this communicator has been aborted");
  }

  // ---- under the lock
  void push_running(std::uint64_t call) { running_[running_tail_++ % running_.size()] = static_cast<std::uint8_t>(call % ring); }
  void finish_done() {
    while (watch_.running()) {
      Slot& s = slots_[running_[running_head_ % running_.size()]];
      if (!s.recorded || !s.end.done()) return;
      ++running_head_;
      watch_.finish_oldest(control::now());
    }
  }
  /// Until NCCL has done in the background what it was asked for. Lets the watching thread in between.
  void wait_for_nccl(Lock& lock, ncclResult_t status, const char* call, const std::string& details, bool starting = false) {
    const double end = control::now() + client_->deadline();
    check_nccl(status, call, details);
    for (int turn = 0;; ++turn) {
      alive(lock);
      ncclResult_t state = ncclSuccess;
      check_nccl(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", call);
      if (state == ncclSuccess) return;
      if (state != ncclInProgress) throw CommError(nccl_text(state, call, details, comm_));
      if (starting && control::now() > end)
        throw CommError(std::string(call) + " (" + details + ") did not end within " + seconds_text(client_->deadline()) +
                        ": all ranks have arrived, so look at the GPUs and the network between them");
      lock.unlock();
      if (turn < 1000) std::this_thread::yield();
      else std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
    }
  }
  bool finalize() {
    if (ncclResult_t status = ncclCommFinalize(comm_); status != ncclSuccess && status != ncclInProgress) return false;
    const double end = control::now() + client_->deadline();
    while (true) {
      ncclResult_t state = ncclSuccess;
      if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) return false;
      if (state != ncclInProgress) return state == ncclSuccess;
      if (client_->failed() || control::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  /// Until nothing runs, or the communicator has failed.
  void drain() noexcept {
    try {
      while (!client_->failed()) {
        {
          const Lock lock(mutex_);
          finish_done();
          if (!watch_.running()) return;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    } catch (const Error& e) {  // the device has failed
      tell(e);
    }
  }
  /// The next slot, once what it held is done. While a stream captures, the watching thread alone may ask events.
  Slot& next_slot(bool captured) {
    Slot& s = slot(tail_);
    while (!s.captured) {
      client_->check();
      {
        const Lock lock(mutex_);
        if (!captured) finish_done();
        if (watch_.oldest() > s.watched) break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    ++tail_;
    return s;
  }
  template <class Call> Ticket launch(const Signature& what, Call&& give, const char* name = nullptr) {
    client_->check();
    if (grouped_ > 0 && tail_ - group_first_ >= ring - 1)
      throw ArgumentError("a group of NCCL calls may hold " + std::to_string(ring - 1));
    const bool captured = capturing();
    if (captured && !cuda::CapturedGraph::being_captured())
      throw ArgumentError(
          "calls of NcclComm are captured by cuda::CapturedGraph::capture, whose graphs are released when the communicator ends: "
          "NCCL would wait for any other graph without a limit");
    if (captured && !may_capture())
      throw DeviceError(
          "calls of an NcclComm whose ranks share a process are not captured: NCCL warns that this may deadlock. A process for "
          "each GPU captures; NcclOptions::capture_in_one_process tries it here");
    const std::uint64_t number = tail_;
    Slot& s = next_slot(captured);
    try {
      s.begin.record(cuda::stream(device_));
      s.begin.hold(stream_.get());
      Lock lock(mutex_);
      alive(lock);
      if (captured) has_captured_ = true, graphs_.note(), last_captured_ = cuda::CapturedGraph::being_captured();
      s.captured = captured;
      s.recorded = false;
      if (!captured) {
        s.watched = watch_.start(what, control::now(), name);
        push_running(number);
      }
      give();
      if (grouped_ > 0) return {number + 1, -1, -1};
      wait_for_nccl(lock, ncclSuccess, name ? name : "a launch", name ? "" : describe(what));
    } catch (const Error& e) {
      tell(e);
      client_->check();
      throw;
    }
    finish_launch(s);
    return {number + 1, -1, -1};
  }
  void finish_launch(Slot& s) {
    {
      const Lock lock(mutex_);
      s.end.record(stream_.get());
      s.recorded = true;
    }
    if (!s.captured) client_->poke();
  }

  /// SKEIN_CHECK: on the host, before NCCL sees it.
  void compare(const Signature& mine) {
    if (capturing()) return;
    std::vector<Signature> all(static_cast<std::size_t>(size_));
    control_->all_gather(DeviceSpan<const Signature, Cpu>(&mine, 1), DeviceSpan<Signature, Cpu>(all.data(), all.size()));
    for (const Signature& s : all)
      if (!(s == mine)) {
        client_->fail(mismatch_text(tail_, size_, [&](int r) { return all[static_cast<std::size_t>(r)]; }));
        client_->check();
      }
  }

  NcclOptions options_;
  Cuda device_;
  std::shared_ptr<control::Client> client_;
  ControlComm* control_;
  std::uint32_t group_;
  int rank_, size_;
  bool ranks_share_process_ = false;
  cuda::Stream stream_;
  std::array<Slot, ring> slots_;
  std::uint64_t tail_ = 0, group_first_ = 0;  // calls of this rank, captured ones among them; the first of the open group
  int grouped_ = 0;
  std::weak_ptr<cuda::CapturedGraph::Executable> last_captured_;  // where the newest captured call is
  std::timed_mutex mutex_;                                        // of what follows
  ncclComm_t comm_ = nullptr;
  control::CallWatch watch_;
  std::array<std::uint8_t, 128> running_{};  // slots of the watch's calls, a ring
  std::uint64_t running_head_ = 0, running_tail_ = 0;
  CapturedCalls graphs_;
  std::atomic<bool> has_captured_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm
