// SPDX-License-Identifier: Apache-2.0
// The bodies of thread_comm.hpp.
#pragma once
#include "thread_comm.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE ThreadComm::ThreadComm(std::shared_ptr<comm::Team> team, int rank)
    : engine_(std::make_unique<engine_type>(std::move(team), rank)), uncaught_(std::uncaught_exceptions()) {}

SKEIN_INLINE ThreadComm& ThreadComm::operator=(ThreadComm&& o) noexcept {
  std::swap(engine_, o.engine_);
  std::swap(uncaught_, o.uncaught_);
  std::swap(splits_, o.splits_);
  return *this;
}

SKEIN_INLINE ThreadComm::~ThreadComm() {
  if (engine_ && std::uncaught_exceptions() <= uncaught_) engine_->retire();
}

SKEIN_INLINE ThreadComm ThreadComm::split(int color, int key) {
  comm::check_color(color);
  struct SplitKey {
    int color, key;
  };
  const std::vector<SplitKey> keys = all_gather(SplitKey{color, key});
  int place = 0, count = 0;
  for (int r = 0; r < size(); ++r) {
    const SplitKey& w = keys[static_cast<std::size_t>(r)];
    if (w.color != color) continue;
    ++count;
    place += w.key < key || (w.key == key && r < rank());
  }
  // No rank's memory is read by another: a failure may end any of them between two lines.
  return ThreadComm(engine_->team().part(splits_++, color, count), place);
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
