// SPDX-License-Identifier: Apache-2.0
// The bodies of thread_comm.hpp.
#pragma once
#include <algorithm>

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
  if (engine_ && std::uncaught_exceptions() <= uncaught_) engine_->leave();
}

SKEIN_INLINE ThreadComm ThreadComm::split(int color, int key) {
  comm::check_color(color);
  struct SplitKey {
    int color, key;
  };
  const std::vector<SplitKey> keys = all_gather(SplitKey{color, key});
  const auto key_of = [&](int r) { return keys[static_cast<std::size_t>(r)].key; };
  std::vector<int> members;
  for (int r = 0; r < size(); ++r)
    if (keys[static_cast<std::size_t>(r)].color == color) members.push_back(r);
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return key_of(a) < key_of(b); });
  const auto place = std::find(members.begin(), members.end(), rank()) - members.begin();
  // No rank's memory is read by another: a failure may end any of them between two lines.
  return ThreadComm(engine_->team().part(splits_++, color, members), static_cast<int>(place));
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
