// SPDX-License-Identifier: Apache-2.0
// The bodies of process_watch.hpp.
#pragma once
#include "process_watch.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "../../core/clock.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

struct ProcessWatch::Process {
  explicit Process(int descriptor) : fd(descriptor) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (fd >= 0) ::close(fd);
  }
  const int fd;
};

SKEIN_MPI_INLINE std::shared_ptr<ProcessWatch::Process> ProcessWatch::open(int pid) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Process>> all;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& p) { return p.second.expired(); });
  if (std::shared_ptr<Process> known = all[pid].lock()) return known;
  int fd = -1;
#if defined(SYS_pidfd_open)
  fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#endif
  if (fd < 0) return nullptr;
  auto made = std::make_shared<Process>(fd);
  all[pid] = made;
  return made;
}

SKEIN_MPI_INLINE ProcessWatch::ProcessWatch(MPI_Comm comm, int rank, int ranks)
    : processes_(static_cast<std::size_t>(ranks)), ended_(static_cast<std::size_t>(ranks)) {
  struct Place {
    std::uint64_t numbers = 0, pid = 0;
  };
  const Place own{process_numbers(), static_cast<std::uint64_t>(::getpid())};
  std::vector<Place> all(static_cast<std::size_t>(ranks));
  check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, comm), "MPI_Allgather");
  for (int r = 0; r < ranks; ++r) {
    const Place& p = all[static_cast<std::size_t>(r)];
    if (r != rank && own.numbers != 0 && p.numbers == own.numbers && p.pid != own.pid)
      processes_[static_cast<std::size_t>(r)] = open(static_cast<int>(p.pid));
  }
}

SKEIN_MPI_INLINE bool ProcessWatch::any_ended() {
  const double now = seconds_now();
  if (now - looked_ < 0.1) return since_ > 0 && now - since_ >= 0.3;
  looked_ = now;
  std::vector<pollfd> polled;
  for (const auto& p : processes_) polled.push_back({p ? p->fd : -1, POLLIN, 0});
  if (::poll(polled.data(), polled.size(), 0) > 0)
    for (std::size_t r = 0; r < polled.size(); ++r) ended_[r] = polled[r].revents != 0;
  if (since_ <= 0 && std::find(ended_.begin(), ended_.end(), true) != ended_.end()) since_ = now;
  return since_ > 0 && now - since_ >= 0.3;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
