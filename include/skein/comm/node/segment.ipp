// SPDX-License-Identifier: Apache-2.0
// The bodies of segment.hpp.
#pragma once
#include "segment.hpp"

#include <utility>

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

namespace detail {
/// Once a process: the ranks of this machine share no memory, though rank 0 has made it, or since there is no room.
inline void say_no_segment(bool made, int ranks, std::size_t bytes) {
  static bool said = false;
  if (std::exchange(said, true)) return;
  if (made)
    std::fprintf(
        stderr,
        "skein: not all of the %d ranks of this machine can open rank 0's shared memory, so that they exchange by "
        "messages, which is slower: give containers --ipc=host, or lower CommOptions::node_size to the ranks of one machine\n",
        ranks);
  else
    std::fprintf(stderr,
                 "skein: /dev/shm has no room for %zu MB, so that the %d ranks of this machine exchange by messages, which is "
                 "slower: give a container --shm-size=%zum\n",
                 (bytes >> 20) + 1, ranks, (bytes >> 20) + 65);
}
}  // namespace detail

SKEIN_INLINE Segment::~Segment() { unmap(); }

SKEIN_INLINE bool Segment::create(NodeMeeting& meeting, int rank, int ranks) {
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
  bool all = false, made = false;
  for (const OpenBy by : {OpenBy::descriptor, OpenBy::name}) {  // who may not look at rank 0's process may know a name
    SharedFileText text = "";
    bool good = rank != 0 || make(text, by);
    made = made || good;
    meeting.tell(text);
    if (rank != 0) good = text[0] && map(open_shared_file(text));
    all = meeting.all(good);
    if (rank == 0) forget_shared_file(text);
    if (all) break;
    unmap();
  }
  if (!all && rank == 0) detail::say_no_segment(made, ranks, bytes_);
  return all;
}

SKEIN_INLINE void Segment::grow_link(int from, int to, std::uint64_t bytes) {
  LinkLine& l = link(from, to);
  if (bytes <= small_ || !larges_ || full_ || l.large.load(std::memory_order_relaxed)) return;
  if (l.produced.load(std::memory_order_relaxed) != l.consumed.load(std::memory_order_acquire)) return;
  full_ = posix_fallocate(file_, static_cast<off_t>(bytes_ + pair(from, to) * large_), static_cast<off_t>(large_)) != 0;
  if (!full_) l.large.store(1, std::memory_order_release);
}

SKEIN_INLINE void Segment::fail(const std::string& message) const {
  Head& head = *at<Head>(0);
  std::uint32_t none = 0;
  if (head.failed.compare_exchange_strong(none, 1)) {
    std::snprintf(head.message, sizeof head.message, "%s", message.c_str());
    head.failed.store(2, std::memory_order_seq_cst);
  }
  for (int i = 0; i < 1000 && !failed(); ++i) std::this_thread::yield();
  wake();
}

SKEIN_INLINE void Segment::retire(int r) const {
  line(r).gone.store(1, std::memory_order_seq_cst);
  wake();
}

SKEIN_INLINE void Segment::wake() const {
  for (int r = 0; r < ranks_; ++r)
    for (const Counter& c : line(r).counter) wake_all(c, Reach::Machine);
}

SKEIN_INLINE bool Segment::make(SharedFileText& text, OpenBy by) {
  file_ = make_shared_file(text, bytes_ + large_ * n() * n(), by);
  // posix_fallocate: a full /dev/shm is found here, not by a SIGBUS later.
  if (file_ < 0 || posix_fallocate(file_, 0, static_cast<off_t>(bytes_)) != 0 || !map(file_)) {
    forget_shared_file(text);
    text[0] = 0;
    return false;
  }
  new (base_) Head();
  for (int r = 0; r < ranks_; ++r) new (&line(r)) Line();
  for (int p = 0; p < ranks_ * ranks_; ++p) new (&link(0, p)) LinkLine();
  return true;
}

SKEIN_INLINE bool Segment::map(int file) {
  file_ = file;
  if (file < 0) return false;
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

SKEIN_INLINE void Segment::unmap() {
  if (base_) munmap(base_, bytes_);
  if (larges_) munmap(larges_, large_ * n() * n());
  if (file_ >= 0) ::close(file_);
  base_ = larges_ = nullptr;
  file_ = -1;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
