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
Lookup process_environment();

/// Devices [begin, end) of a rank.
struct DeviceBlock {
  int begin = 0, end = 0;
  constexpr int size() const { return end - begin; }
  friend constexpr bool operator==(DeviceBlock, DeviceBlock) = default;
};

/// The ordinal that a rank drives: its local rank modulo the visible devices. Throws ArgumentError where there is none.
constexpr int device_of(int local_rank, int visible) {
  if (local_rank < 0) throw ArgumentError(skein::text("placement: a local rank is 0 or more; it is {}", local_rank));
  if (visible < 1)
    throw ArgumentError(
        "placement: this process sees no GPU: nvidia-smi shows what there is, CUDA_VISIBLE_DEVICES what is hidden");
  return local_rank % visible;
}

/// D devices over M ranks: rank r drives [r D / M, (r + 1) D / M). Throws ArgumentError where a rank would get none.
constexpr DeviceBlock device_block(int local_rank, int local_size, int devices) {
  if (local_size < 1 || local_rank < 0 || local_rank >= local_size)
    throw ArgumentError(skein::text("placement: there is no local rank {} among {}", local_rank, local_size));
  if (devices < local_size)
    throw ArgumentError(skein::text(
        "placement: {} ranks cannot each drive a block of {} GPUs: start at most one rank a GPU, or let ranks share (device_of)",
        local_size, devices));
  const long d = devices, m = local_size, r = local_rank;
  return {static_cast<int>(r * d / m), static_cast<int>((r + 1) * d / m)};
}

/// A number of 0 or more, the whole text; nothing for anything else.
std::optional<int> parse_count(std::string_view text);

/// Slurm's list of tasks a node, "2(x3),1" being 2, 2, 2, 1. Throws ArgumentError for anything else.
std::vector<int> parse_tasks_per_node(std::string_view text);

/// The first host of Slurm's list: "node[03-07,9],login" begins with node03. Throws ArgumentError for an empty or unclosed list.
std::string first_host(std::string_view list);

/// What the launcher says about this process. A value of -1 was not said.
struct LaunchEnvironment {
  std::string launcher = "none";  ///< who said it: Open MPI, torchrun, Slurm, ...
  int rank = -1, size = -1, local_rank = -1, local_size = -1;
  /// The devices of this process were narrowed to one (CUDA_VISIBLE_DEVICES): it is ordinal 0 whatever the local rank.
  std::optional<int> visible{};

  /// A launcher has said something of ranks.
  bool is_launched() const { return rank >= 0 || size >= 0; }
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

int read_count(const Lookup& lookup, const char* name);
void check_pair(const char* rank_name, int rank, const char* size_name, int size);
/// Ordinals in CUDA_VISIBLE_DEVICES; nothing where it is not set. CUDA stops at the first entry that it does not know, such as
/// -1.
std::optional<int> read_visible(const Lookup& lookup);
bool read_slurm(LaunchEnvironment& e, const Lookup& lookup);
}  // namespace detail

/// Reads what the launcher says. Throws ArgumentError that names the variables which contradict each other.
LaunchEnvironment launch_environment(const Lookup& lookup = process_environment());

/// The ordinal that this process drives, of `visible` that it sees. A process whose devices the launcher narrowed to one takes
/// it.
int resolve_device(const LaunchEnvironment& e, int visible);
/// The ordinals that this process drives where ranks divide the GPUs of a machine among them. Where the launcher gives each rank
/// its own GPUs, all that are visible are its own.
DeviceBlock resolve_block(const LaunchEnvironment& e, int visible, bool own = false);

/// The GPUs that one process drives with a rank each: all that are visible, or those named. Throws ArgumentError for a duplicate
/// or a negative ordinal.
class LocalDevices {
 public:
  LocalDevices() = default;
  LocalDevices(std::initializer_list<int> ordinals) : LocalDevices(std::vector<int>(ordinals)) {}
  explicit LocalDevices(std::vector<int> ordinals);
  /// The ordinals, of `visible` that this process sees. Throws ArgumentError where one is not visible, or there is none at all.
  std::vector<int> resolve(int visible) const;

 private:
  std::vector<int> ordinals_;
};

}  // namespace skein::inline SKEIN_ABI::comm::launch

namespace skein::inline SKEIN_ABI {
using comm::launch::LocalDevices;
}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "local_devices.ipp"
#endif
