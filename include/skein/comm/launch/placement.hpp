// SPDX-License-Identifier: Apache-2.0
// Which GPUs a rank drives, as pure functions of what the launcher says: LaunchEnvironment reads the variables of Open MPI, MPICH
// and its kin (Hydra, MVAPICH, Intel MPI), Slurm and torchrun through a lookup function; device_of and device_block are
// arithmetic. Nothing here asks a device.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/error.hpp"

namespace skein::inline SKEIN_ABI::comm::launch {

/// The value of an environment variable; nothing where it is not set.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

/// The environment of this process.
inline Lookup process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* text = std::getenv(name);
    return text ? std::optional<std::string>(text) : std::nullopt;
  };
}

/// Devices [begin, end) of a rank.
struct DeviceBlock {
  int begin = 0, end = 0;
  constexpr int size() const { return end - begin; }
  friend constexpr bool operator==(DeviceBlock, DeviceBlock) = default;
};

/// The ordinal that a rank drives: its local rank modulo the visible devices. Throws ArgumentError where there is none.
constexpr int device_of(int local_rank, int visible) {
  if (local_rank < 0) throw ArgumentError("placement: a local rank is 0 or more; it is " + std::to_string(local_rank));
  if (visible < 1)
    throw ArgumentError(
        "placement: this process sees no GPU: nvidia-smi shows what there is, CUDA_VISIBLE_DEVICES what is hidden");
  return local_rank % visible;
}

/// D devices over M ranks: rank r drives [r D / M, (r + 1) D / M). Throws ArgumentError where a rank would get none.
constexpr DeviceBlock device_block(int local_rank, int local_size, int devices) {
  if (local_size < 1 || local_rank < 0 || local_rank >= local_size)
    throw ArgumentError("placement: there is no local rank " + std::to_string(local_rank) + " among " +
                        std::to_string(local_size));
  if (devices < local_size)
    throw ArgumentError("placement: " + std::to_string(local_size) + " ranks cannot each drive a block of " +
                        std::to_string(devices) + " GPUs: start at most one rank a GPU, or let ranks share (device_of)");
  const long d = devices, m = local_size, r = local_rank;
  return {static_cast<int>(r * d / m), static_cast<int>((r + 1) * d / m)};
}

/// A number of 0 or more, the whole text; nothing for anything else.
inline std::optional<int> parse_count(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  int n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    n = n * 10 + (c - '0');
  }
  return n;
}

/// Slurm's list of tasks a node, "2(x3),1" being 2, 2, 2, 1. Throws ArgumentError for anything else.
inline std::vector<int> parse_tasks_per_node(std::string_view text) {
  const auto refuse = [&] {
    return ArgumentError("placement: SLURM_TASKS_PER_NODE is '" + std::string(text) + "'; a list such as 2(x3),1 was expected");
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

/// The first host of Slurm's list: "node[03-07,9],login" begins with node03. Throws ArgumentError for an empty or unclosed list.
inline std::string first_host(std::string_view list) {
  const auto refuse = [&] { return ArgumentError("placement: '" + std::string(list) + "' is no list of hosts"); };
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

/// What the launcher says about this process. A value of -1 was not said.
struct LaunchEnvironment {
  std::string launcher = "none";  ///< who said it: Open MPI, torchrun, Slurm, ...
  int rank = -1, size = -1, local_rank = -1, local_size = -1;
  /// The devices of this process were narrowed to one (CUDA_VISIBLE_DEVICES): it is ordinal 0 whatever the local rank.
  std::optional<int> visible{};

  /// This process's place among those on its machine; 0 of 1 where no launcher said anything.
  int rank_on_node() const { return local_rank < 0 ? 0 : local_rank; }
  int ranks_on_node() const { return local_size < 0 ? 1 : local_size; }
};

namespace detail {
struct LaunchNames {
  const char* launcher;
  const char *rank, *size, *local_rank, *local_size;
};
// In the order of trust: who starts processes itself comes before the Slurm that it may run in.
inline constexpr LaunchNames launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"Intel MPI or MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
    {"PMIx", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"},
};

inline int read_count(const Lookup& lookup, const char* name) {
  const std::optional<std::string> text = lookup(name);
  if (!text || text->empty()) return -1;
  const std::optional<int> n = parse_count(*text);
  if (!n) throw ArgumentError(std::string("placement: ") + name + " is '" + *text + "'; a number was expected");
  return *n;
}
inline void check_pair(const char* rank_name, int rank, const char* size_name, int size) {
  if (rank >= 0 && size >= 0 && rank >= size)
    throw ArgumentError(std::string("placement: ") + rank_name + " is " + std::to_string(rank) + ", but " + size_name + " is " +
                        std::to_string(size) + ": ranks count from 0");
}
/// Ordinals in CUDA_VISIBLE_DEVICES; nothing where it is not set. CUDA stops at the first entry that it does not know, such as
/// -1.
inline std::optional<int> read_visible(const Lookup& lookup) {
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
}  // namespace detail

/// Reads what the launcher says. Throws ArgumentError that names the variables which contradict each other.
inline LaunchEnvironment launch_environment(const Lookup& lookup = process_environment()) {
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
      throw ArgumentError(std::string("placement: ") + n.local_size + " is " + std::to_string(e.local_size) + ", more than " +
                          n.size + " (" + std::to_string(e.size) + ")");
    return e;
  }
  const int local = detail::read_count(lookup, "SLURM_LOCALID"), rank = detail::read_count(lookup, "SLURM_PROCID");
  if (local >= 0 && rank >= 0) {
    e.launcher = "Slurm";
    e.local_rank = local;
    e.rank = rank;
    e.size = detail::read_count(lookup, "SLURM_NTASKS");
    // Of the step, where it differs from the allocation's.
    std::optional<std::string> tasks = lookup("SLURM_STEP_TASKS_PER_NODE");
    if (!tasks) tasks = lookup("SLURM_TASKS_PER_NODE");
    if (const int steps = detail::read_count(lookup, "SLURM_STEP_NUM_TASKS"); steps >= 0) e.size = steps;
    const int node = detail::read_count(lookup, "SLURM_NODEID");
    if (tasks && node >= 0) {
      const std::vector<int> per_node = parse_tasks_per_node(*tasks);
      if (static_cast<std::size_t>(node) >= per_node.size())
        throw ArgumentError("placement: SLURM_NODEID is " + std::to_string(node) + ", but SLURM_TASKS_PER_NODE ('" + *tasks +
                            "') names " + std::to_string(per_node.size()) + " nodes");
      e.local_size = per_node[static_cast<std::size_t>(node)];
    }
    detail::check_pair("SLURM_LOCALID", e.local_rank, "SLURM_TASKS_PER_NODE of this node", e.local_size);
    detail::check_pair("SLURM_PROCID", e.rank, "SLURM_NTASKS", e.size);
    return e;
  }
  e.rank = detail::read_count(lookup, "RANK");  // started by hand, or by a script
  e.size = detail::read_count(lookup, "WORLD_SIZE");
  if (e.rank >= 0 && e.size >= 0) e.launcher = "RANK and WORLD_SIZE";
  detail::check_pair("RANK", e.rank, "WORLD_SIZE", e.size);
  return e;
}

/// The ordinal that this process drives, of `visible` that it sees. A process whose devices the launcher narrowed to one takes
/// it.
inline int resolve_device(const LaunchEnvironment& e, int visible) {
  if (e.visible && *e.visible < visible)
    throw ArgumentError("placement: CUDA_VISIBLE_DEVICES names " + std::to_string(*e.visible) + " GPUs, the runtime sees " +
                        std::to_string(visible) + ": was it changed after the first CUDA call?");
  return device_of(e.rank_on_node(), visible);
}
/// The ordinals that this process drives where ranks divide the GPUs of a machine among them. Where the launcher gives each rank
/// its own GPUs, all that are visible are its own.
inline DeviceBlock resolve_block(const LaunchEnvironment& e, int visible, bool own = false) {
  if (visible < 1) (void)device_of(0, visible);  // says that there is none
  return own ? DeviceBlock{0, visible} : device_block(e.rank_on_node(), e.ranks_on_node(), visible);
}

/// The GPUs that one process drives with a rank each: all that are visible, or those named. Throws ArgumentError for a duplicate
/// or a negative ordinal.
class LocalDevices {
 public:
  LocalDevices() = default;
  LocalDevices(std::initializer_list<int> ordinals) : LocalDevices(std::vector<int>(ordinals)) {}
  explicit LocalDevices(std::vector<int> ordinals) : ordinals_(std::move(ordinals)) {
    for (std::size_t i = 0; i < ordinals_.size(); ++i) {
      if (ordinals_[i] < 0)
        throw ArgumentError("LocalDevices: " + std::to_string(ordinals_[i]) + " is no ordinal of a GPU: they count from 0");
      for (std::size_t j = 0; j < i; ++j)
        if (ordinals_[i] == ordinals_[j])
          throw ArgumentError("LocalDevices: GPU " + std::to_string(ordinals_[i]) +
                              " is named twice; each rank drives one of its own");
    }
  }
  /// The ordinals, of `visible` that this process sees. Throws ArgumentError where one is not visible, or there is none at all.
  std::vector<int> resolve(int visible) const {
    if (visible < 1) (void)device_of(0, visible);
    std::vector<int> all = ordinals_;
    for (int i = 0; ordinals_.empty() && i < visible; ++i) all.push_back(i);
    for (const int o : all)
      if (o >= visible)
        throw ArgumentError("LocalDevices: GPU " + std::to_string(o) + " is not visible: this process sees " +
                            std::to_string(visible) + " (CUDA_VISIBLE_DEVICES says which)");
    return all;
  }

 private:
  std::vector<int> ordinals_;
};

}  // namespace skein::inline SKEIN_ABI::comm::launch

namespace skein::inline SKEIN_ABI {
using comm::launch::LocalDevices;
}  // namespace skein::inline SKEIN_ABI
