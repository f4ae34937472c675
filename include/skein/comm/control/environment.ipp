// SPDX-License-Identifier: Apache-2.0
// The bodies of environment.hpp.
#pragma once
#include "environment.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

namespace detail {
[[noreturn]] inline void refuse_launcher(const comm::launch::LaunchEnvironment& e, const std::string& master) {
  const std::string missing = e.rank >= 0 ? "WORLD_SIZE" : e.size >= 0 ? "RANK" : "RANK and WORLD_SIZE";
  throw ArgumentError("from_environment: the launcher (" + e.launcher + ") does not say rank and size" +
                      (master.empty() ? "" : ", although MASTER_ADDR is " + in_quotes(master)) + ": set " + missing +
                      ", or start with torchrun, srun or mpirun" +
                      (e.is_launched() || master.empty() ? "" : "; for a world of one unset MASTER_ADDR"));
}
/// Rank 0 is at MASTER_ADDR and MASTER_PORT; torchrun's own store sits on the port itself.
inline Address master_address(const std::string& host, const std::string& port, bool store_has_port) {
  const int p = comm::launch::parse_count(port).value_or(0), skip = store_has_port ? 1 : 0;
  if (p < 1 || p + skip > 65535)
    throw ArgumentError("from_environment: MASTER_ADDR is " + in_quotes(host) + ", but MASTER_PORT is " + in_quotes(port) +
                        ": a port was expected");
  return {host, p + skip};
}
}  // namespace detail

SKEIN_INLINE RendezvousAddress rendezvous_address(const comm::launch::Lookup& lookup) {
  const comm::launch::LaunchEnvironment e = comm::launch::launch_environment(lookup);
  const auto text = [&](const char* name) { return lookup(name).value_or(""); };
  const std::string host = text("MASTER_ADDR");
  if (e.rank < 0 || e.size < 0) detail::refuse_launcher(e, host);
  RendezvousAddress m;
  m.rank = e.rank;
  m.size = e.size;
  m.job = text("TORCHELASTIC_RUN_ID") + "/" + text("SLURM_JOB_ID") + "/";
  // Who numbers ranks by RANK, and says where they meet, may start them in several steps: `srun -N1 -n1 torchrun ... &` for each
  // node.
  const bool across_steps = !host.empty() && (e.launcher == "torchrun" || e.launcher == "RANK and WORLD_SIZE");
  std::string step;
  for (const char* name : {"SLURM_STEP_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"})
    if (!across_steps) step += text(name) + "/";
  m.job += step;
  const bool is_named = !text("TORCHELASTIC_RUN_ID").empty() || step.find_first_not_of('/') != step.npos;
  if (!host.empty()) {
    m.address = detail::master_address(host, text("MASTER_PORT"), text("TORCHELASTIC_USE_AGENT_STORE") == "True");
    return m;
  }
  const std::string nodes = text("SLURM_STEP_NODELIST").empty() ? text("SLURM_JOB_NODELIST") : text("SLURM_STEP_NODELIST");
  if (e.launcher == "Slurm" && !nodes.empty()) {
    const int job = comm::launch::parse_count(text("SLURM_JOB_ID")).value_or(0),
              number = comm::launch::parse_count(text("SLURM_STEP_ID")).value_or(0);
    // Below the ports that Linux gives to connections (32768 and up), which another program may have at any time.
    m.ports = 8;
    m.address = {comm::launch::first_host(nodes), 20000 + (job % 100000 * 4 + number % 4) % 1590 * m.ports};
    return m;
  }
  if (m.size == 1) return m;
  if (e.local_size != m.size || !is_named)  // by more than an allocation, in which several jobs may be
    throw ArgumentError(
        skein::text("from_environment: {} ranks of {}, but nothing says where rank 0 is: set MASTER_ADDR and MASTER_PORT", m.size,
                    e.launcher));
  m.folder = text("XDG_RUNTIME_DIR");
  m.fallback = skein::text("{}/skein-{}", (text("TMPDIR").empty() ? "/tmp" : text("TMPDIR")), ::geteuid());
  m.file = skein::text("skein-meeting-{}", hash_bytes(m.job.data(), m.job.size()));
  return m;
}

SKEIN_INLINE std::unique_ptr<Client> meet(const RendezvousAddress& m, const RankPlace& place) {
  if (m.size == 1) return serve_at(Listener({"localhost", 0}), place, "localhost");
  if (m.file.empty()) return meet_at(m.address.text(), place, m.ports);
  // The same on all ranks, which are on this machine.
  const bool runtime = !m.folder.empty() && is_private_folder(m.folder);
  if (!runtime) make_private_folder(m.fallback);
  RankPlace here = place;
  here.one_machine = true;
  return meet_in_file((runtime ? m.folder : m.fallback) + "/" + m.file, here);
}

}  // namespace skein::inline SKEIN_ABI::comm::control
