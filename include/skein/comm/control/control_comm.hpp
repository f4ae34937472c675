// SPDX-License-Identifier: Apache-2.0
// A communicator of the host over a coordinator: what ranks say to each other beside what their GPUs do (plans, sums of a few
// numbers, barriers), without MPI. Everything goes through rank 0, N times the bytes: for control values, not for gradients.
#pragma once
#include <vector>

#include "../concepts.hpp"
#include "../messages.hpp"
#include "../options.hpp"
#include "../work.hpp"
#include "environment.hpp"

namespace skein::inline SKEIN_ABI {

namespace comm {
/// Aligned memory for values of any type. (Not std::max_align_t: nvcc 13.0 crashes on its destructor.)
struct alignas(16) Block {
  unsigned char bytes[16];
};

/// A rank's wish in a split.
struct SplitKey {
  int color = 0, key = 0, rank = 0;
};

/// The number of the group that a split makes of a colour: of the call, and of the colour's place among all. Throws
/// ArgumentError, on all ranks alike, where there are more than 1024 colours.
std::uint32_t group_number(std::uint64_t ticket, const std::vector<SplitKey>& keys, int color);

/// Carries out every call at once: all ranks' bytes come from the coordinator, and each does its own share.
class ControlEngine {
 public:
  static constexpr bool starts_by_waiting = true;
  ControlEngine(std::shared_ptr<control::Client> client, std::uint32_t group, int rank, RankNames ranks);

  control::Client& client() { return *client_; }
  const std::shared_ptr<control::Client>& shared_client() const { return client_; }
  std::uint32_t group() const { return group_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  const RankNames& rank_names() const { return names_; }
  /// The number of the last call, given by the coordinator: the same on every member, and that of no other call.
  std::uint64_t ticket() const { return ticket_; }

  void run(const CollectiveCall& o);
  Ticket start(const CollectiveCall& o);
  bool test(Ticket&) { return true; }
  void wait(Ticket&) {}
  void progress() { check(); }
  void abandon() {}
  /// This rank makes no call any more: the others are told, once, and why where an exception has left it.
  void leave(const std::string& why = {}) {
    if (!std::exchange(left_, true)) client_->leave(group_, why);
  }
  /// Ends the ranks of this communicator with a message; those of a part in it alone.
  void fail(const std::string& message) { client_->fail_group(group_, message); }
  bool failed() { return client_->group_failed(group_); }
  /// Throws what has ended it.
  void check() { client_->check_group(group_); }

 private:
  [[noreturn]] void end_all(const std::string& text);
  // Whoever knows the port can be a rank: what came is as long as the call says before a byte of it is used.
  void check_values(const CollectiveCall& o, std::uint64_t call, const std::vector<std::size_t>& values);
  static bool sends(const CollectiveCall& o, int rank);
  // work_direct writes slices into all ranks' buffers; here each rank has all the bytes and makes the whole of its own.
  void work(const CollectiveCall& o, const std::vector<CollectiveCall>& posts);

  std::shared_ptr<control::Client> client_;
  std::uint32_t group_;
  RankNames names_;
  int rank_, size_;
  Pointers pointers_;
  std::uint64_t calls_ = 0, ticket_ = 0;
  bool left_ = false;
};
}  // namespace comm

/// How ranks meet without MPI, and how long they wait for each other.
struct MeetOptions {
  /// Seconds until a rank that does not arrive is named: more than 0, infinity for no deadline (environment: SKEIN_DEADLINE).
  double deadline = CommOptions::deadline_of_environment();
  /// A name that the ranks of this job have in common and those of others have not; may be empty.
  std::string job{};
  /// What the ranks of this job have in common and nobody else knows: 16 characters or more, never sent (environment:
  /// SKEIN_JOB_SECRET). Empty: whoever reaches rank 0's port and guesses `job` can be a rank. Those that meet in a file have one
  /// anyway.
  std::string secret = from_environment("SKEIN_JOB_SECRET");

  static std::string from_environment(const char* name);
};

/// Ranks that meet at an address or through a file. Collectives of the host, for control values; no messages between two ranks.
/// Move-only; used from one thread. A rank that dies, or does not arrive, ends all with a CommError that names it.
class ControlComm : public comm::Agreements<ControlComm, Cpu> {
 public:
  static constexpr std::string_view name = "ControlComm";
  static constexpr comm::Capabilities capabilities{comm::Capability::deadlines, comm::Capability::failures,
                                                   comm::Capability::splits};
  using engine_type = comm::ControlEngine;
  template <class T, class Op> static constexpr bool reduces = Reduction<Op, T>;

  /// All ranks give the address of rank 0, "host:port". Collective.
  static ControlComm from_address(const std::string& address, int rank, int size, const MeetOptions& options = {});
  /// All ranks give the path of a file that none has yet, in a folder that all see. Collective.
  static ControlComm from_file(const std::string& path, int rank, int size, const MeetOptions& options = {});
  /// By MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, by Slurm's variables, or, where all ranks are on one machine, by the job's
  /// name alone (mpirun without MPI). Collective.
  static ControlComm from_environment(MeetOptions options = {},
                                      const comm::launch::Lookup& lookup = comm::launch::process_environment());
  /// The ranks of from_environment(), or a world of one where nothing has launched this process. Throws ArgumentError where
  /// MASTER_ADDR is set, and nothing says rank and size. Collective.
  static ControlComm from_launcher(MeetOptions options = {});
  /// The ranks of another communicator of the host, which carries the address only. Collective.
  template <class Comm> static ControlComm over(Comm& world, double deadline) {
    return ControlComm(comm::control::meet_over(world, comm::checked_deadline(deadline, "a meeting of ranks")));
  }

  ControlComm(ControlComm&&) = default;
  ControlComm& operator=(ControlComm&& o) noexcept;
  ~ControlComm();

  int rank() const { return engine_->rank(); }
  int size() const { return engine_->size(); }
  /// Seconds until a rank that does not arrive is named.
  double deadline() const { return engine_->client().deadline(); }
  void set_deadline(double seconds) { engine_->client().set_deadline(comm::checked_deadline(seconds, "set_deadline")); }
  /// Ends all ranks with a message; those of a part in it alone.
  void fail(const std::string& message) { engine_->fail(message); }

  /// A communicator of the ranks with this colour (0 or more; 1024 of them at most), ordered by key, then by rank. Collective;
  /// blocking.
  ControlComm split(int color, int key = 0);

  engine_type& engine() { return *engine_; }

 private:
  explicit ControlComm(std::unique_ptr<comm::control::Client> client);
  ControlComm(std::shared_ptr<comm::control::Client> client, std::uint32_t group, int rank, comm::RankNames ranks);
  static comm::control::RankPlace place(int rank, int size, const MeetOptions& o);

  std::unique_ptr<engine_type> engine_;
  int uncaught_ = std::uncaught_exceptions();
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "control_comm.ipp"
#endif
