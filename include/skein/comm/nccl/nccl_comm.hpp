// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each. Collectives of GPU memory are NCCL's; what ranks say to each other on the host (sums of a few numbers,
// plans, barriers, who is missing) goes over the coordinator, through which they also met: over MPI, between threads, at an
// address, in a file, or by what the launcher says.
#pragma once
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../node/process_numbers.hpp"
#include "../queries.hpp"
#include "engine.hpp"

namespace skein::inline SKEIN_ABI {

namespace comm {
/// Which GPU of which machine, driven by which process under which ordinal.
struct DeviceIdentity {
  std::uint64_t machine = 0, process = 0;
  std::int64_t ordinal = 0;
  char bus[24] = "";
};
}  // namespace comm

/// A rank with a GPU. Move-only; used from one thread, whose calls go to that GPU from here on. The collectives of GPU memory do
/// not block the host: what the caller's stream was given before comes before them, and what it is given after wait() (or after a
/// blocking form) comes behind; beside that they run on a stream of their own. Sums are deterministic on one set of ranks and
/// devices, but not in the order of the ranks. No functions of one's own: NCCL knows Sum, Mean, Max and Min.
class NcclComm : public comm::Messages<NcclComm, Cuda> {
 public:
  static constexpr std::string_view name = "NcclComm";
  using engine_type = comm::NcclEngine;
  template <class T, class Op> static constexpr bool reduces = BuiltinReduction<Op>&& comm::NcclScalar<T>;
  /// Its calls may be part of a CUDA graph, where each rank has a process of its own (see NcclOptions::capture_in_one_process).
  /// All ranks must capture, and replay, alike.
  static constexpr comm::Capabilities capabilities{
      comm::Capability::nodes,        comm::Capability::processes, comm::Capability::devices,  comm::Capability::captures,
      comm::Capability::bucket_sizes, comm::Capability::deadlines, comm::Capability::failures, comm::Capability::splits};
  /// Gradient buckets of DataParallel: a call of NCCL costs the host and the links some ten microseconds whatever it carries, and
  /// 64 may be in flight. Sizes as PyTorch has them; nobody has measured ours.
  static constexpr long bucket_bytes = 25L << 20, first_bucket_bytes = 1L << 20;

  /// By what the launcher says (torchrun, Slurm, mpirun on one machine; alone without one), each rank on the GPU of its local
  /// rank.
  NcclComm(int&, char**&, const NcclOptions& options = {}) : NcclComm(from_launcher(options)) {}
  /// The ranks of a communicator of the host (MpiComm, ThreadComm), which carries the meeting place only. Collective over it.
  template <class Host>
  requires(Communicator<Host>&& std::same_as<typename Host::device, Cpu> &&
           !std::same_as<Host, ControlComm>) explicit NcclComm(Host& world, Cuda device, const NcclOptions& options = {})
      : NcclComm(ControlComm::over(world, options.deadline), device, options) {
    one_process_ = comm::one_process(world);
  }
  template <class Host>
  requires(Communicator<Host>&& std::same_as<typename Host::device, Cpu> &&
           !std::same_as<Host, ControlComm>) explicit NcclComm(Host& world, const NcclOptions& options = {})
      : NcclComm(world, device_on_node(world), options) {}
  /// The ranks of a coordinator, which becomes this communicator's. Collective.
  NcclComm(ControlComm control, Cuda device, const NcclOptions& options = {})
      : control_(std::make_unique<ControlComm>(std::move(control))) {
    cuda::use(device);
    const bool share_process = look_at_devices(device);
    engine_ = std::make_unique<engine_type>(*control_, device, options);
    engine_->set_ranks_share_process(share_process);
  }

  /// All ranks give the address of rank 0, "host:port". Collective.
  static NcclComm from_address(const std::string& address, int rank, int size, const NcclOptions& options = {}) {
    return NcclComm(ControlComm::from_address(address, rank, size, meet(options)), own_device(), options);
  }
  /// All ranks give the path of a file that none has yet, in a folder that all see. Collective.
  static NcclComm from_file(const std::string& path, int rank, int size, const NcclOptions& options = {}) {
    return NcclComm(ControlComm::from_file(path, rank, size, meet(options)), own_device(), options);
  }
  /// By MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE (torchrun sets them), or by Slurm's variables. Collective.
  static NcclComm from_environment(const NcclOptions& options = {}) {
    return NcclComm(ControlComm::from_environment(meet(options)), own_device(), options);
  }

  /// The ranks of from_environment(), or a world of one where nothing has launched this process and MASTER_ADDR is not set.
  static NcclComm from_launcher(const NcclOptions& options = {}) {
    const bool launched = comm::launch::launch_environment(comm::launch::process_environment()).is_launched();
    return NcclComm(ControlComm::from_launcher(meet(options)), launched ? own_device() : cuda::current_device(), options);
  }

  NcclComm(NcclComm&& o) noexcept
      : control_(std::move(o.control_)), engine_(std::move(o.engine_)), node_size_(o.node_size_), one_process_(o.one_process_),
        uncaught_(o.uncaught_) {}
  NcclComm& operator=(NcclComm&& o) noexcept {
    std::swap(control_, o.control_);
    std::swap(engine_, o.engine_);
    std::swap(node_size_, o.node_size_);
    std::swap(one_process_, o.one_process_);
    std::swap(uncaught_, o.uncaught_);
    return *this;
  }
  ~NcclComm() {
    if (engine_ && detail::fault_leaves(uncaught_) && !engine_->failed())
      fail(control_->engine().rank_names().name(rank()) + " failed: an exception left the scope of its NcclComm");
    engine_.reset();
  }

  int rank() const { return control_->rank(); }
  int size() const { return control_->size(); }
  /// This rank's GPU.
  Cuda where() const { return engine_->device(); }
  /// Ranks on this rank's machine, and whether they are threads of this process.
  int node_size() const { return node_size_; }
  bool one_process() const { return one_process_; }

  /// Returns when every rank's host has come here. Blocking; says nothing of what GPUs have done.
  void barrier() { control_->barrier(); }
  /// A communicator of the ranks with this colour (0 or more), ordered by key, then by rank. Collective; blocking.
  NcclComm split(int color, int key = 0) { return NcclComm(*this, color, key); }

  /// What the scope's started calls have in common is one launch, at the end of the scope; messages that cross must be in one.
  class Group {
   public:
    explicit Group(engine_type& engine) : engine_(&engine), uncaught_(std::uncaught_exceptions()) { engine.begin_group(); }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    ~Group() noexcept(false) {
      if (!engine_) return;
      if (std::uncaught_exceptions() > uncaught_) engine_->drop_group();
      else engine_->end_group();
    }
    /// Ends it before the scope does: then requests may be waited for.
    void end() { std::exchange(engine_, nullptr)->end_group(); }

   private:
    engine_type* engine_;
    int uncaught_;
  };
  Group group() { return Group(*engine_); }

  /// Throws CommError where the communicator has failed: after one has waited for the device, and before one trusts what it made.
  void check() const { engine_->check_alive(); }
  /// The calling thread's stream as it is now counts as one call: who replays a captured step has its deadline watched so.
  void replayed() { engine_->watch_stream("a replayed step"); }
  /// Ends all ranks with a message, those of the whole where this is a part.
  void fail(const std::string& message) { control_->engine().client().fail(message); }
  /// Seconds until a rank that does not arrive is named.
  double deadline() const { return control_->deadline(); }
  void set_deadline(double seconds) { control_->set_deadline(seconds); }

  /// The communicator of the host over the same ranks: spans of the host go there.
  ControlComm& control() { return *control_; }
  /// NCCL's own, for other libraries' calls, and the stream of this one's.
  ncclComm_t native() const { return engine_->native(); }
  cudaStream_t stream() const { return engine_->stream(); }
  engine_type& engine() { return *engine_; }

 private:
  NcclComm(NcclComm& parent, int color, int key)
      : control_(std::make_unique<ControlComm>(parent.control_->split(color, key))),
        engine_(std::make_unique<engine_type>(*control_, *parent.engine_, color, key)), node_size_(parent.node_size_),
        one_process_(parent.one_process_) {}

  static MeetOptions meet(const NcclOptions& o) {
    MeetOptions m;
    m.deadline = o.deadline;
    m.job = o.job;
    return m;
  }
  static Cuda own_device() {
    return Cuda{comm::launch::resolve_device(comm::launch::launch_environment(), cuda::device_count())};
  }
  template <class Host> static Cuda device_on_node(Host& world) {
    return Cuda{comm::launch::device_of(comm::node_rank(world), cuda::device_count())};
  }

  /// Two ranks on one GPU hang inside NCCL: they are told here. Counts who shares this machine. Returns whether any two of the
  /// ranks share a process: the same answer on all.
  bool look_at_devices(Cuda device) {
    comm::DeviceIdentity mine;
    std::string machine;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), machine);
    char host[256] = "";
    (void)::gethostname(host, sizeof host - 1);
    machine += host;
    mine.machine = hash_bytes(machine.data(), machine.size());
    // With the namespace of the number: each container that shares this host's name may have a process 1.
    const std::uint64_t process[] = {comm::process_numbers(), static_cast<std::uint64_t>(::getpid())};
    mine.process = hash_bytes(process, sizeof process);
    mine.ordinal = device.ordinal;
    cuda::check(cudaDeviceGetPCIBusId(mine.bus, sizeof mine.bus, device.ordinal), "cudaDeviceGetPCIBusId");
    const std::vector<comm::DeviceIdentity> all = all_gather(mine);
    node_size_ = 0;
    bool share_process = false;
    for (int r = 0; r < size(); ++r) {
      const comm::DeviceIdentity& a = all[static_cast<std::size_t>(r)];
      node_size_ += a.machine == mine.machine;
      if (a.machine == mine.machine && a.process == mine.process) share_memory(device, Cuda{static_cast<int>(a.ordinal)});
      for (int q = 0; q < r; ++q) {
        const comm::DeviceIdentity& b = all[static_cast<std::size_t>(q)];
        if (a.machine != b.machine) continue;
        share_process = share_process || a.process == b.process;
        if (std::string(a.bus) == b.bus)
          throw CommError(
              text("ranks {} and {} both drive the GPU {} of one machine, and NCCL takes one rank a GPU: start fewer ranks, or "
                   "take HostBounce<MpiComm>",
                   q, r, a.bus));
      }
    }
    return share_process;
  }

  /// NCCL reads the arrays of other GPUs of one process where they lie. Those of a memory pool are open to their own GPU alone,
  /// whatever cudaDeviceEnablePeerAccess says, until the pool is opened.
  static void share_memory(Cuda device, Cuda with) {
    int possible = 0;
    if (with == device) return;
    if (cudaDeviceCanAccessPeer(&possible, with.ordinal, device.ordinal) != cudaSuccess) (void)cudaGetLastError();
    if (!possible) return;  // NCCL goes another way then
    cudaMemPool_t pool{};
    cuda::check(cudaDeviceGetDefaultMemPool(&pool, device.ordinal), "cudaDeviceGetDefaultMemPool");
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = with.ordinal;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    cuda::check(cudaMemPoolSetAccess(pool, &access, 1), "cudaMemPoolSetAccess",
                [&] { return text("for Cuda {}", with.ordinal); });
  }

  std::unique_ptr<ControlComm> control_;
  std::unique_ptr<engine_type> engine_;
  int node_size_ = 1;
  bool one_process_ = false;
  int uncaught_ = std::uncaught_exceptions();
};

}  // namespace skein::inline SKEIN_ABI
