// SPDX-License-Identifier: Apache-2.0
// The bodies of local_devices.hpp.
#pragma once
#include "local_devices.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm::launch {

SKEIN_INLINE Lookup process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* text = std::getenv(name);
    return text ? std::optional<std::string>(text) : std::nullopt;
  };
}

SKEIN_INLINE std::optional<int> parse_count(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  int n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    n = n * 10 + (c - '0');
  }
  return n;
}

SKEIN_INLINE std::vector<int> parse_tasks_per_node(std::string_view text) {
  const auto refuse = [&] {
    return ArgumentError("placement: SLURM_TASKS_PER_NODE is " + in_quotes(text) + "; a list such as 2(x3),1 was expected");
  };
  std::vector<int> tasks;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    int times = 1;
    if (const std::size_t open = item.find("(x"); open != std::string_view::npos) {
      const auto n = item.back() == ')' ? parse_count(item.substr(open + 2, item.size() - open - 3)) : std::nullopt;
      if (!n || *n < 1) throw refuse();
      times = *n;
      item = item.substr(0, open);
    }
    const auto count = parse_count(item);
    if (!count || *count < 1 || tasks.size() + static_cast<std::size_t>(times) > 1000000) throw refuse();
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), *count);
    if (comma == std::string_view::npos) return tasks;
    rest = rest.substr(comma + 1);
  }
}

SKEIN_INLINE std::string first_host(std::string_view list) {
  const auto refuse = [&] { return ArgumentError("placement: " + in_quotes(list) + " is no list of hosts"); };
  const std::size_t open = list.find('['), comma = list.find(',');
  if (list.empty() || comma == 0) throw refuse();
  if (open == std::string_view::npos || comma < open) return std::string(list.substr(0, comma));
  const std::size_t close = list.find(']', open);
  if (close == std::string_view::npos || close == open + 1) throw refuse();
  const std::string_view numbers = list.substr(open + 1, close - open - 1);
  const std::size_t tail_end = list.find_first_of(",[", close);
  const std::string_view first = numbers.substr(0, numbers.find_first_of(",-"));
  if (!parse_count(first)) throw refuse();
  return std::string(list.substr(0, open)) + std::string(first) +
         std::string(list.substr(close + 1, tail_end == std::string_view::npos ? tail_end : tail_end - close - 1));
}

}  // namespace skein::inline SKEIN_ABI::comm::launch

namespace skein::inline SKEIN_ABI::comm::launch::detail {

SKEIN_INLINE int read_count(const Lookup& lookup, const char* name) {
  const std::optional<std::string> text = lookup(name);
  if (!text || text->empty()) return -1;
  const std::optional<int> n = parse_count(*text);
  if (!n) throw ArgumentError(std::string("placement: ") + name + " is " + in_quotes(*text) + "; a number was expected");
  return *n;
}

SKEIN_INLINE void check_pair(const char* rank_name, int rank, const char* size_name, int size) {
  if (rank >= 0 && size >= 0 && rank >= size)
    throw ArgumentError(skein::text("placement: {} is {}, but {} is {}: ranks count from 0", rank_name, rank, size_name, size));
}

SKEIN_INLINE std::optional<int> read_visible(const Lookup& lookup) {
  const std::optional<std::string> text = lookup("CUDA_VISIBLE_DEVICES");
  if (!text) return std::nullopt;
  int n = 0;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t comma = std::min(text->find(',', at), text->size());
    if (comma == at || (*text)[at] == '-') break;
    ++n;
    at = comma + 1;
  }
  return n;
}

/// What Slurm says of a step's task; false where it did not start this process.
SKEIN_INLINE bool read_slurm(LaunchEnvironment& e, const Lookup& lookup) {
  const int local = read_count(lookup, "SLURM_LOCALID"), rank = read_count(lookup, "SLURM_PROCID");
  if (local < 0 || rank < 0) return false;
  e.launcher = "Slurm";
  e.local_rank = local;
  e.rank = rank;
  e.size = read_count(lookup, "SLURM_NTASKS");
  // Of the step, where it differs from the allocation's.
  std::optional<std::string> tasks = lookup("SLURM_STEP_TASKS_PER_NODE");
  if (!tasks) tasks = lookup("SLURM_TASKS_PER_NODE");
  if (const int steps = read_count(lookup, "SLURM_STEP_NUM_TASKS"); steps >= 0) e.size = steps;
  const int node = read_count(lookup, "SLURM_NODEID");
  if (tasks && node >= 0) {
    const std::vector<int> per_node = parse_tasks_per_node(*tasks);
    if (static_cast<std::size_t>(node) >= per_node.size())
      throw ArgumentError(skein::text("placement: SLURM_NODEID is {}, but SLURM_TASKS_PER_NODE ('{}') names {} nodes", node,
                                      *tasks, per_node.size()));
    e.local_size = per_node[static_cast<std::size_t>(node)];
  }
  check_pair("SLURM_LOCALID", e.local_rank, "SLURM_TASKS_PER_NODE of this node", e.local_size);
  check_pair("SLURM_PROCID", e.rank, "SLURM_NTASKS", e.size);
  return true;
}

}  // namespace skein::inline SKEIN_ABI::comm::launch::detail

namespace skein::inline SKEIN_ABI::comm::launch {

SKEIN_INLINE LaunchEnvironment launch_environment(const Lookup& lookup) {
  LaunchEnvironment e;
  e.visible = detail::read_visible(lookup);
  for (const detail::LaunchNames& n : detail::launchers) {
    const int local = detail::read_count(lookup, n.local_rank);
    if (local < 0) continue;
    e.launcher = n.launcher;
    e.local_rank = local;
    e.local_size = detail::read_count(lookup, n.local_size);
    e.rank = detail::read_count(lookup, n.rank);
    e.size = detail::read_count(lookup, n.size);
    detail::check_pair(n.local_rank, e.local_rank, n.local_size, e.local_size);
    detail::check_pair(n.rank, e.rank, n.size, e.size);
    if (e.size >= 0 && e.local_size > e.size)
      throw ArgumentError(skein::text("placement: {} is {}, more than {} ({})", n.local_size, e.local_size, n.size, e.size));
    return e;
  }
  if (detail::read_slurm(e, lookup)) return e;
  e.rank = detail::read_count(lookup, "RANK");  // started by hand, or by a script
  e.size = detail::read_count(lookup, "WORLD_SIZE");
  if (e.rank >= 0 && e.size >= 0) e.launcher = "RANK and WORLD_SIZE";
  detail::check_pair("RANK", e.rank, "WORLD_SIZE", e.size);
  return e;
}

SKEIN_INLINE int resolve_device(const LaunchEnvironment& e, int visible) {
  if (e.visible && *e.visible < visible)
    throw ArgumentError(skein::text(
        "placement: CUDA_VISIBLE_DEVICES names {} GPUs, the runtime sees {}: was it changed after the first CUDA call?",
        *e.visible, visible));
  return device_of(e.rank_on_node(), visible);
}

SKEIN_INLINE DeviceBlock resolve_block(const LaunchEnvironment& e, int visible, bool own) {
  if (visible < 1) (void)device_of(0, visible);  // says that there is none
  return own ? DeviceBlock{0, visible} : device_block(e.rank_on_node(), e.ranks_on_node(), visible);
}

SKEIN_INLINE LocalDevices::LocalDevices(std::vector<int> ordinals) : ordinals_(std::move(ordinals)) {
  for (std::size_t i = 0; i < ordinals_.size(); ++i) {
    if (ordinals_[i] < 0)
      throw ArgumentError(skein::text("LocalDevices: {} is no ordinal of a GPU: they count from 0", ordinals_[i]));
    for (std::size_t j = 0; j < i; ++j)
      if (ordinals_[i] == ordinals_[j])
        throw ArgumentError(skein::text("LocalDevices: GPU {} is named twice; each rank drives one of its own", ordinals_[i]));
  }
}

SKEIN_INLINE std::vector<int> LocalDevices::resolve(int visible) const {
  if (visible < 1) (void)device_of(0, visible);
  std::vector<int> all = ordinals_;
  for (int i = 0; ordinals_.empty() && i < visible; ++i) all.push_back(i);
  for (const int o : all)
    if (o >= visible)
      throw ArgumentError(
          skein::text("LocalDevices: GPU {} is not visible: this process sees {} (CUDA_VISIBLE_DEVICES says which)", o, visible));
  return all;
}

}  // namespace skein::inline SKEIN_ABI::comm::launch

SKEIN_END_COLD
