// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes, without MPI: started by torchrun, Slurm or by hand, they meet over a coordinator, as those of
// NcclComm do. On one machine collectives and messages go through shared memory; between machines over gloo's connections.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../concepts.hpp"
#include "../messages.hpp"
#include "../node/process_numbers.hpp"
#include "../node/share_pages.hpp"
#include "engine.hpp"

namespace skein::inline SKEIN_ABI {

/// A rank among processes. Move-only; used from one thread. Reductions are in the order of the ranks, over every transport; calls
/// are compared between the ranks always. A rank that dies, or does not arrive within the deadline, ends all with a CommError
/// that names it. Of CommOptions it takes `deadline`, `shared_memory`, `shared_pages`, `node_size` and `message`, the least of
/// all ranks'.
class GlooComm : public comm::Messages<GlooComm, Cpu> {
 public:
  static constexpr std::string_view name = "GlooComm";
  static constexpr comm::Capabilities capabilities{
      comm::Capability::nodes,  comm::Capability::node_places, comm::Capability::deadlines, comm::Capability::failures,
      comm::Capability::orders, comm::Capability::splits,      comm::Capability::shares};
  using engine_type = comm::GlooEngine;
  template <class T, class Op> static constexpr bool reduces = Reduction<Op, T>;

  /// By what the launcher says (torchrun, Slurm, mpirun on one machine); a world of one where nothing has launched this process.
  /// Throws ArgumentError where MASTER_ADDR is set, and nothing says rank and size. Collective.
  GlooComm(int&, char**&, const CommOptions& options = {}) : GlooComm(ControlComm::from_launcher(meet(options)), options) {}
  /// The ranks of a coordinator, which becomes this communicator's. Collective.
  explicit GlooComm(ControlComm control, const CommOptions& options = {})
      : GlooComm(std::make_unique<ControlComm>(std::move(control)), comm::checked_options(options), nullptr, -1) {}

  /// All ranks give the address of rank 0, "host:port". Collective.
  static GlooComm from_address(const std::string& address, int rank, int size, const CommOptions& options = {}) {
    return GlooComm(ControlComm::from_address(address, rank, size, meet(options)), options);
  }
  /// All ranks give the path of a file that none has yet, in a folder that all see. Collective.
  static GlooComm from_file(const std::string& path, int rank, int size, const CommOptions& options = {}) {
    return GlooComm(ControlComm::from_file(path, rank, size, meet(options)), options);
  }

  GlooComm(GlooComm&& o) noexcept
      : control_(std::move(o.control_)), engine_(std::move(o.engine_)), node_(o.node_), node_size_(o.node_size_),
        node_rank_(o.node_rank_), uncaught_(o.uncaught_) {}
  GlooComm& operator=(GlooComm&& o) noexcept {
    std::swap(control_, o.control_);
    std::swap(engine_, o.engine_);
    std::swap(node_, o.node_);
    std::swap(node_size_, o.node_size_);
    std::swap(node_rank_, o.node_rank_);
    std::swap(uncaught_, o.uncaught_);
    return *this;
  }
  ~GlooComm() {
    if (engine_ && detail::fault_leaves(uncaught_) && !engine_->failed()) {
      const std::string why = engine_->rank_names().name(rank()) + " failed: an exception left the scope of its GlooComm";
      if (control_->engine().group() != 0) engine_->leave(why);
      else engine_->end_all(why);
    }
    engine_.reset();
  }

  int rank() const { return control_->rank(); }
  int size() const { return control_->size(); }
  /// Ranks on this rank's node, and this rank's place among them.
  int node_size() const { return node_size_; }
  int node_rank() const { return node_rank_; }
  /// Collectives and messages go through shared memory: all ranks are on one node.
  bool shares_memory() const { return engine_->shares_memory(); }
  /// How values are added: in the order of the ranks.
  ReductionOrder order() const { return ReductionOrder::ranks; }

  /// Ends all ranks with a CommError; those of a part in it alone.
  [[noreturn]] void fail(const std::string& message) { engine_->fail(message); }
  /// Seconds until a rank that does not arrive is named.
  double deadline() const { return engine_->options().deadline; }
  void set_deadline(double seconds) {
    engine_->options().deadline = comm::checked_deadline(seconds, "set_deadline");
    control_->set_deadline(seconds);
  }

  /// A communicator of the ranks with this colour (0 or more), ordered by key, then by rank. Collective; blocking.
  GlooComm split(int color, int key = 0) {
    comm::check_color(color);
    barrier();  // a rank that is missing is named by its call
    return GlooComm(std::make_unique<ControlComm>(control_->split(color, key)), engine_->options(), engine_->device(), node_);
  }
  /// Memory of this rank that the others read and write too, as MpiComm::share gives it. Collective; blocking.
  comm::SharedPages share(std::size_t bytes) { return comm::share_pages(*this, *engine_, bytes); }

  engine_type& engine() { return *engine_; }

 private:
  /// `node`: this rank's, of a part where CommOptions::node_size says them; -1: by its rank here.
  GlooComm(std::unique_ptr<ControlComm> control, const CommOptions& options, engine_type::GlooDevice device, int node)
      : control_(std::move(control)), node_(options.node_size > 0 && node < 0 ? rank() / options.node_size : node) {
    struct Place {
      std::uint64_t machine, node, message;
      int shares;
    };
    const std::uint64_t machine = this_machine();
    const std::vector<Place> all = control_->all_gather(
        Place{machine, node_ >= 0 ? static_cast<std::uint64_t>(node_) : machine, options.message, options.shared_memory ? 1 : 0});
    const Place& own = all[static_cast<std::size_t>(rank())];
    comm::NodeSharing sharing{.shares_memory = true, .one_machine = true};
    CommOptions agreed = options;
    node_size_ = 0;
    for (int r = 0; r < size(); ++r) {
      const Place& p = all[static_cast<std::size_t>(r)];
      sharing.one_machine = sharing.one_machine && p.machine == machine;
      sharing.shares_memory = sharing.shares_memory && p.shares && p.machine == machine && p.node == own.node;
      agreed.message = std::min<std::size_t>(agreed.message, p.message);
      if (p.node == own.node) ++node_size_;
      if (p.node == own.node && r < rank()) ++node_rank_;
    }
    engine_ = std::make_unique<engine_type>(*control_, agreed, sharing, std::move(device));
  }
  static std::uint64_t this_machine() {
    if (const std::uint64_t numbers = comm::process_numbers()) return numbers;
    char host[256] = "";
    (void)::gethostname(host, sizeof host - 1);
    return hash_bytes(host, sizeof host);
  }
  static MeetOptions meet(const CommOptions& o) {
    MeetOptions m;
    m.deadline = o.deadline;
    return m;
  }

  std::unique_ptr<ControlComm> control_;
  std::unique_ptr<engine_type> engine_;
  int node_ = -1, node_size_ = 1, node_rank_ = 0;
  int uncaught_ = std::uncaught_exceptions();
};

}  // namespace skein::inline SKEIN_ABI
