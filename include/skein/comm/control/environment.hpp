// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a job meet, by what its launcher says: MASTER_ADDR and MASTER_PORT (torchrun, or set by hand), the nodes of
// a Slurm job, or one machine whose launcher names the job. A pure function of the environment.
#pragma once
#include "file.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// Where a rank meets the others, who it is, and which job it belongs to.
struct RendezvousAddress {
  Address address{};
  int ports = 1;  ///< rank 0 takes the first that is free of so many
  /// In place of the address, where all ranks are on this machine: a file in `folder`, else in `fallback`, which is made.
  std::string file{}, folder{}, fallback{};
  int rank = 0, size = 1;
  std::string job{};  ///< its name, which all ranks have in common
};

/// Throws ArgumentError that says which variable is missing, or contradicts another.
RendezvousAddress rendezvous_address(const comm::launch::Lookup& lookup = comm::launch::process_environment());

/// Collective; blocking.
std::unique_ptr<Client> meet(const RendezvousAddress& m, const RankPlace& place);

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "environment.ipp"
#endif
