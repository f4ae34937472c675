// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of a node map: their lines, the signatures of their calls, the failure that ends all, two rings of slots
// for each rank through which collectives pass, and a ring of bytes for each pair through which messages do. Its name is gone as
// soon as all have it, so that nothing is left behind.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "../collective_call.hpp"
#include "../wait.hpp"
#include "api.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What two ranks say about the ring from one to the other, in bytes since the start.
struct alignas(128) LinkLine {
  std::atomic<std::uint64_t> produced{0};
  alignas(64) std::atomic<std::uint64_t> consumed{0};
  Counter large{0};  // the ring is the large one; changes while it is empty
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "counters are shared between processes: they must be lock-free");

/// The bytes of the ring from one rank to another; positions are modulo `bytes`.
struct Ring {
  char* data = nullptr;
  std::uint64_t bytes = 0;
};

/// One mapping a communicator. Owns it; whoever refers into it must end before it does.
class Segment {
 public:
  static constexpr std::uint64_t calls = 64;         // signatures of a rank's ring: more than its slots
  static constexpr std::uint64_t folding_depth = 4;  // slots of the short ring: they stay in the second-level cache

  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment() {
    unmap();
    if (file_ >= 0) ::close(file_);
  }

  /// Collective over ranks of one node. False, on all ranks alike, where the machine gives no shared memory.
  bool create(MPI_Comm comm, int rank, int ranks) {
    ranks_ = ranks;
    slot_ = std::max<std::size_t>(std::size_t{128} << 10, static_cast<std::size_t>(ranks) * 4096);
    // A ring longer than the second-level cache: a slot that comes round again has left the reader's cache, and is written at
    // the speed of the third level instead of being fetched back line by line (two to four times slower, measured).
    depth_ = std::clamp<std::size_t>((std::size_t{16} << 20) / (slot_ * n()), 4, 32);
    lines_at_ = sizeof(Head);
    signatures_at_ = lines_at_ + sizeof(Line) * n();
    links_at_ = (signatures_at_ + sizeof(Signature) * calls * n() + 127) / 128 * 128;
    small_ = std::clamp<std::size_t>((std::size_t{1} << 20) / (n() * n()) / 16 * 16, 256, std::size_t{1} << 16);
    large_ = (std::size_t{64} << 20) / (n() * n()) / 4096 * 4096;
    large_ = large_ > 4 * small_ ? std::min<std::size_t>(large_, std::size_t{8} << 20) : 0;
    rings_at_ = links_at_ + sizeof(LinkLine) * n() * n();
    slots_at_ = (rings_at_ + small_ * n() * n() + 4095) / 4096 * 4096;
    folding_at_ = slots_at_ + slot_ * depth_ * n();
    bytes_ = (folding_at_ + slot_ * folding_depth * n() + 4095) / 4096 * 4096;
    char name[64] = "";
    int good = 1;
    if (rank == 0) good = make(name) ? 1 : 0;
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm);
    if (rank != 0) good = name[0] && open(name) ? 1 : 0;
    int all = 0;
    MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm);
    if (rank == 0 && name[0]) shm_unlink(name);
    if (!all) unmap();
    return all != 0;
  }

  Line& line(int r) const { return at<Line>(lines_at_)[r]; }
  Signature& signature(int r, std::uint64_t call) const {
    return at<Signature>(signatures_at_)[static_cast<std::uint64_t>(r) * calls + call % calls];
  }
  /// Of the long ring: what a rank writes here, the others only read.
  char* slot(int r, std::uint64_t chunk) const {
    return at<char>(slots_at_) + (static_cast<std::size_t>(r) * depth_ + chunk % depth_) * slot_;
  }
  /// Of the short ring: each part of it has one other rank, which reads it and writes to it again.
  char* folding_slot(int r, std::uint64_t chunk) const {
    return at<char>(folding_at_) + (static_cast<std::size_t>(r) * folding_depth + chunk % folding_depth) * slot_;
  }
  LinkLine& link(int from, int to) const { return at<LinkLine>(links_at_)[pair(from, to)]; }
  /// Where messages from one rank to another pass, as the sender has chosen.
  Ring ring(int from, int to) const {
    if (link(from, to).large.load(std::memory_order_relaxed)) return {larges_ + pair(from, to) * large_, large_};
    return {at<char>(rings_at_) + pair(from, to) * small_, small_};
  }
  /// Gives a link that is empty the large ring, for a message of so many bytes. Its memory is claimed here, so that links that
  /// carry little cost little; where the machine has none left, the small one has to do. Called by the sender.
  void grow_link(int from, int to, std::uint64_t bytes) {
    LinkLine& l = link(from, to);
    if (bytes <= small_ || !larges_ || full_ || l.large.load(std::memory_order_relaxed)) return;
    if (l.produced.load(std::memory_order_relaxed) != l.consumed.load(std::memory_order_acquire)) return;
    full_ = posix_fallocate(file_, static_cast<off_t>(bytes_ + pair(from, to) * large_), static_cast<off_t>(large_)) != 0;
    if (!full_) l.large.store(1, std::memory_order_release);
  }
  std::size_t slot_bytes() const { return slot_; }
  std::size_t depth() const { return depth_; }

  bool failed() const { return at<Head>(0)->failed.load(std::memory_order_acquire) == 2; }
  std::string message() const { return at<Head>(0)->message; }
  /// The first message stays; all sleepers wake.
  void fail(const std::string& message) const {
    Head& head = *at<Head>(0);
    std::uint32_t none = 0;
    if (head.failed.compare_exchange_strong(none, 1)) {
      std::snprintf(head.message, sizeof head.message, "%s", message.c_str());
      head.failed.store(2, std::memory_order_seq_cst);
    }
    for (int i = 0; i < 1000 && !failed(); ++i) std::this_thread::yield();
    for (int r = 0; r < ranks_; ++r)
      for (const Counter& c : line(r).counter) wake_all(c, Reach::Machine);
  }

 private:
  struct alignas(128) Head {
    Counter failed{0};  // 1 while the message is written, 2 after
    char message[1500] = "";
  };
  std::size_t pair(int from, int to) const { return static_cast<std::size_t>(from) * n() + static_cast<std::size_t>(to); }
  std::size_t n() const { return static_cast<std::size_t>(ranks_); }
  template <class T> T* at(std::size_t offset) const { return reinterpret_cast<T*>(base_ + offset); }

  bool make(char (&name)[64]) {
    for (int attempt = 0; attempt < 100; ++attempt) {
      const auto now = static_cast<unsigned long long>(std::chrono::steady_clock::now().time_since_epoch().count());
      std::snprintf(name, sizeof name, "/skein-%d-%llx-%d", static_cast<int>(getpid()), now, attempt);
      const int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
      if (file < 0) continue;
      file_ = file;
      // posix_fallocate: a full /dev/shm is found here, not by a SIGBUS later.
      const bool good = ftruncate(file, static_cast<off_t>(bytes_ + large_ * n() * n())) == 0 &&
                        posix_fallocate(file, 0, static_cast<off_t>(bytes_)) == 0 && map(file);
      if (!good) {
        shm_unlink(name);
        break;
      }
      new (base_) Head();
      for (int r = 0; r < ranks_; ++r) new (&line(r)) Line();
      for (int p = 0; p < ranks_ * ranks_; ++p) new (&link(0, p)) LinkLine();
      return true;
    }
    name[0] = 0;
    return false;
  }
  bool open(const char* name) {
    const int file = shm_open(name, O_RDWR, 0600);
    return file >= 0 && map(file);
  }
  bool map(int file) {
    file_ = file;
    int flags = MAP_SHARED;
#if defined(MAP_POPULATE)
    flags |= MAP_POPULATE;
#endif
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, file, 0);
    if (p == MAP_FAILED) return false;
    base_ = static_cast<char*>(p);
    if (large_ == 0) return true;
    void* const q = mmap(nullptr, large_ * n() * n(), PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(bytes_));
    if (q == MAP_FAILED) return false;
    larges_ = static_cast<char*>(q);
    return true;
  }
  void unmap() {
    if (base_) munmap(base_, bytes_);
    if (larges_) munmap(larges_, large_ * n() * n());
    base_ = larges_ = nullptr;
  }

  int ranks_ = 0;
  std::size_t slot_ = 0, depth_ = 4, lines_at_ = 0, signatures_at_ = 0, slots_at_ = 0, folding_at_ = 0, bytes_ = 0;
  std::size_t links_at_ = 0, rings_at_ = 0, small_ = 0, large_ = 0;  // bytes of a pair's rings
  char *base_ = nullptr, *larges_ = nullptr;
  int file_ = -1;
  bool full_ = false;  // no memory was left for a large ring
};

}  // namespace skein::inline SKEIN_ABI::comm
