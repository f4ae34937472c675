// SPDX-License-Identifier: Apache-2.0
// How a communicator whose ranks are all on one node comes by pages that they share (MpiComm::share, GlooComm::share).
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "../op.hpp"
#include "../shared_pages.hpp"
#include "node_pages.hpp"

namespace skein::inline SKEIN_ABI::comm {

namespace detail {
template <class Comm> std::shared_ptr<NodePages> map_pages(Comm& world, std::size_t bytes) {
  const auto asked = static_cast<std::int64_t>(bytes);
  std::int64_t most[] = {asked, -asked};
  world.all_reduce(std::span(most), Max{});
  if (most[0] <= 0 || most[0] != -most[1]) return {};
  for (const OpenBy by : {OpenBy::descriptor, OpenBy::name}) {
    struct Made {
      bool here;
      SharedFileText text = "";
      ~Made() {
        if (here) forget_shared_file(text);
      }
    } made{world.rank() == 0};
    const auto pages = std::make_shared<NodePages>(world.rank(), world.size(), bytes);
    if (made.here) (void)pages->make(made.text, by);
    world.broadcast(std::span(made.text));
    std::int64_t failed[] = {pages->map(made.text) ? 0 : 1};
    world.all_reduce(std::span(failed), Max{});
    if (failed[0] != 0) continue;
    pages->touch();
    return pages;
  }
  return {};
}
}  // namespace detail

/// This rank's part of pages of so many bytes a rank, mapped by all, which the engine's collectives then know. None, on all ranks
/// alike, where they are not on one node, the options say so, /dev/shm has no room, or the ranks ask for different sizes or for
/// nothing. Collective; blocking.
template <class Comm, class Engine> SharedPages share_pages(Comm& world, Engine& engine, std::size_t bytes) {
  if (world.size() == 1 || !world.shares_memory()) return {};
  const auto pages = detail::map_pages(world, engine.options().shared_pages ? bytes : 0);
  if (!pages) return {};
  engine.add(pages);
  return {std::shared_ptr<void>(pages, pages->own()), bytes};
}

}  // namespace skein::inline SKEIN_ABI::comm
