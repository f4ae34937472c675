// SPDX-License-Identifier: Apache-2.0
// The bodies of sim_comm.hpp.
#pragma once
#include "sim_comm.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE SimEngine::SimEngine(std::shared_ptr<SimWorld> world, std::shared_ptr<SimGroup> group, int place)
    : world_(std::move(world)), group_(std::move(group)), place_(place), rank_(group_->members[static_cast<std::size_t>(place)]) {
}

SKEIN_INLINE void SimEngine::run(const CollectiveCall& o) {
  Ticket t = start(o);
  wait(t);
}

SKEIN_INLINE Ticket SimEngine::start_send(const void* data, std::size_t bytes, int to, int tag) {
  return world_->send(rank_, *group_, data, bytes, to, tag);
}

SKEIN_INLINE Ticket SimEngine::start_recv(void* data, std::size_t bytes, int from, int tag) {
  return world_->receive(rank_, *group_, data, bytes, from, tag);
}

SKEIN_INLINE bool SimEngine::wait_some(Ticket& t, std::chrono::nanoseconds limit) {
  if (limit < std::chrono::milliseconds(1)) return test(t);
  wait(t);
  return true;
}

SKEIN_INLINE void SimEngine::abandon() {
  world_->failure().abandon(rank_);
  world_->wake();
}

SKEIN_INLINE std::shared_ptr<SimGroup> SimEngine::part(std::uint64_t split, int color, const std::vector<int>& members) {
  return world_->group(group_->id, split, color, members);
}

}  // namespace skein::inline SKEIN_ABI::comm

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE SimComm::SimComm(std::shared_ptr<comm::SimWorld> world, std::shared_ptr<comm::SimGroup> group, int place)
    : engine_(std::make_unique<engine_type>(std::move(world), std::move(group), place)) {}

SKEIN_INLINE int SimComm::node_size() const {
  int n = 0;
  for (const int m : engine_->group().members) n += engine_->world().options().network.together(m, engine_->rank());
  return n;
}

SKEIN_INLINE SimComm SimComm::split(int color, int key) {
  comm::check_color(color);
  struct SplitKey {
    int color, key, rank;
  };
  std::vector<SplitKey> keys = all_gather(SplitKey{color, key, engine_->rank()});
  std::stable_sort(keys.begin(), keys.end(), [](const SplitKey& a, const SplitKey& b) { return a.key < b.key; });
  std::vector<int> members;
  int place = 0;
  for (const SplitKey& w : keys) {
    if (w.color != color) continue;
    if (w.rank == engine_->rank()) place = static_cast<int>(members.size());
    members.push_back(w.rank);
  }
  return SimComm(engine_->shared(), engine_->part(engine_->next_split(), color, members), place);
}

}  // namespace skein::inline SKEIN_ABI
