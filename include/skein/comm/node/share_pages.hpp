// SPDX-License-Identifier: Apache-2.0
// How a communicator whose ranks are all on one node comes by pages that they share (MpiComm::share, GlooComm::share).
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "../op.hpp"
#include "node_pages.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Pages of so many bytes a rank, mapped by all. None, on all ranks alike, where /dev/shm has no room, or the ranks ask for
/// different sizes or for nothing. Collective; blocking.
template <class Comm> std::shared_ptr<NodePages> share_pages(Comm& world, std::size_t bytes) {
  const auto asked = static_cast<std::int64_t>(bytes);
  std::int64_t most[] = {asked, -asked};
  world.all_reduce(std::span(most), Max{});
  if (most[0] <= 0 || most[0] != -most[1]) return {};
  struct File {
    char name[64] = "";
    bool made = false;
    ~File() { remove(); }
    void remove() {
      if (std::exchange(made, false)) shm_unlink(name);
    }
  } file;
  const auto pages = std::make_shared<NodePages>(world.rank(), world.size(), bytes);
  if (world.rank() == 0) file.made = pages->make(file.name);
  world.broadcast(std::span(file.name));
  std::int64_t failed[] = {pages->map(file.name) ? 0 : 1};
  world.all_reduce(std::span(failed), Max{});
  file.remove();
  if (failed[0] != 0) return {};
  pages->touch();
  return pages;
}

}  // namespace skein::inline SKEIN_ABI::comm
