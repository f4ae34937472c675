// SPDX-License-Identifier: Apache-2.0
// The ncclComm_t of one rank. NCCL's calls return before they have done their work; what makes, waits for and ends it looks
// whether the communicator has failed meanwhile, so that nothing here waits for a rank that is gone.
#pragma once
#include <nccl.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "../../core/text.hpp"
#include "../control/control_comm.hpp"
#include "options.hpp"
#include "status.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// NCCL's communicator, and the lock that a rank's own thread and the one that watches it share. Functions that take a Lock are
/// called with it.
class NcclHandle {
 public:
  using Lock = std::unique_lock<std::timed_mutex>;

  explicit NcclHandle(std::shared_ptr<control::Client> client) : client_(std::move(client)) {}
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  std::timed_mutex& mutex() { return mutex_; }
  ncclComm_t get() const { return comm_; }

  /// Collective over the ranks of `control`, which are those of a colour of `parent` where there is one. Throws CommError.
  void make(ControlComm& control, const NcclOptions& options, NcclHandle* parent, int color, int key) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = options.blocking ? 1 : 0;
    try {
      Lock lock(mutex_);
      ncclResult_t status = ncclSuccess;
      const char* call = parent ? "ncclCommSplit" : "ncclCommInitRankConfig";
      if (parent) {
        Lock of_parent(parent->mutex_);
        comm_ = parent->split(of_parent, color, key, config);
      } else {
        ncclUniqueId id{};
        if (control.rank() == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
        control.broadcast(DeviceSpan<char, Cpu>(id.internal, sizeof id.internal), 0);
        status = ncclCommInitRankConfig(&comm_, control.size(), id, control.rank(), &config);
      }
      wait(lock, status, call, text("rank {} of {}", control.rank(), control.size()), true);
    } catch (const Error&) {
      if (comm_) (void)ncclCommAbort(comm_);
      comm_ = nullptr;
      throw;
    }
  }
  /// Until NCCL has done in the background what it was asked for. Lets the watching thread in between. Throws CommError.
  void wait(Lock& lock, ncclResult_t status, const char* call, const std::string& details, bool starting = false) {
    auto timer = Deadline::from_now(client_->deadline());
    check_nccl(status, call, details);
    for (int turn = 0;; ++turn) {
      check_alive(lock);
      ncclResult_t state = ncclSuccess;
      check_nccl(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", call);
      if (state == ncclSuccess) return;
      if (state != ncclInProgress) throw CommError(nccl_text(state, call, details, comm_));
      if (starting && timer.over())
        throw CommError(std::string(call) + " (" + details + ") did not end within " + seconds_text(timer.limit()) +
                        ": all ranks have arrived, so look at the GPUs and the network between them");
      lock.unlock();
      if (turn < 1000) std::this_thread::yield();
      else std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
    }
  }
  /// What has gone wrong in the background; ncclSuccess, ncclInProgress: nothing.
  ncclResult_t state(const Lock&) const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    return asked != ncclSuccess ? asked : state;
  }
  /// Throws CommError where the communicator has failed.
  void check_alive(Lock& lock) {
    if (comm_ && !client_->failed()) return;
    lock.unlock();
    client_->check();
    throw CommError("this communicator has been aborted");
  }
  /// The end: together with the other ranks, where none has `failed`.
  void release(const Lock&, bool failed) {
    if (!comm_) return;
    if (!failed && finalize()) (void)ncclCommDestroy(comm_);
    else (void)ncclCommAbort(comm_);
    comm_ = nullptr;
  }
  /// Whoever takes it aborts it.
  ncclComm_t take(const Lock&) { return std::exchange(comm_, nullptr); }

 private:
  /// Until this communicator is ready, NCCL has not written the part's handle: a thread of NCCL does, perhaps after this has
  /// thrown, and so into a cell that is nobody's then. Waits; throws CommError.
  ncclComm_t split(Lock& lock, int color, int key, ncclConfig_t& config) {
    check_alive(lock);
    auto made = std::make_unique<ncclComm_t>(nullptr);
    const ncclResult_t status = ncclCommSplit(comm_, color, key, made.get(), &config);
    try {
      wait(lock, status, "ncclCommSplit", {}, true);
    } catch (const Error&) {
      (void)made.release();  // 8 bytes
      throw;
    }
    return *made;
  }
  bool finalize() {
    if (ncclResult_t status = ncclCommFinalize(comm_); status != ncclSuccess && status != ncclInProgress) return false;
    auto timer = Deadline::from_now(client_->deadline());
    while (true) {
      ncclResult_t state = ncclSuccess;
      if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) return false;
      if (state != ncclInProgress) return state == ncclSuccess;
      if (client_->failed() || timer.over()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  std::shared_ptr<control::Client> client_;
  std::timed_mutex mutex_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace skein::inline SKEIN_ABI::comm
