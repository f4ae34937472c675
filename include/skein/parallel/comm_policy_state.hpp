// SPDX-License-Identifier: Apache-2.0
// CommPolicyState: what the states of all policies over a communicator have in common: who the ranks are, sums over them, buffers
// made the same, and what was waited for.
#pragma once
#include <string>
#include <vector>

#include "../comm/concepts.hpp"
#include "../comm/op.hpp"
#include "../comm/queries.hpp"
#include "../core/clock.hpp"
#include "../core/error.hpp"
#include "../core/named_values.hpp"
#include "policy.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The base of such states: `comm` and what the replica's arenas point to must outlive it.
template <class Comm, class Scalar, class Device> class CommPolicyState : public PolicyState {
 public:
  using communicator = Comm;
  static constexpr bool simulated_time = comm::can<Comm, comm::Capability::clocks>;
  static constexpr Capabilities capabilities{Capability::communicates};
  using scalar = Scalar;
  using device = Device;
  CommPolicyState(Comm& comm, const Replica<Scalar, Device>& replica) : comm_(&comm), replica_(replica) {}

  int rank() const { return comm_->rank(); }
  int ranks() const { return comm_->size(); }
  int local_ranks() const { return comm::node_size(*comm_); }
  bool threads_of_one_process() const { return comm::one_process(*comm_); }
  /// The means of all ranks' buffers.
  void average_buffers() {
    if (several() && replica_.buffers.size > 0) comm_->all_reduce(replica_.buffers, Mean{});
  }
  void reduce(std::span<double> values) {
    if (several() && !values.empty()) comm_->all_reduce(DeviceSpan<double, Cpu>(values.data(), values.size()), Sum{});
  }
  void barrier() {
    if (several()) comm_->barrier();
  }
  std::vector<std::uint64_t> numbers_of_all(std::span<const std::uint64_t> own) { return comm_->all_gather(own); }
  std::vector<std::string> texts_of_all(const std::string& own) { return comm_->all_gather(own); }
  comm::RankNames rank_names() const { return comm::names_of(*comm_); }
  double exposed_seconds() const { return exposed_; }
  void check() const {
    if constexpr (comm::can<Comm, comm::Capability::captures>) comm_->check();
  }
  Comm& comm() const { return *comm_; }

 protected:
  bool several() const { return comm_->size() > 1; }
  const Replica<Scalar, Device>& replica() const { return replica_; }
  void add_exposed(double seconds) { exposed_ += seconds; }
  /// While it lives, the rank waits for an exchange that nothing hides.
  [[nodiscard]] AddedSeconds waiting() { return AddedSeconds(exposed_); }
  /// What ranks must have alike: the model, to which a policy adds its own options.
  NamedValues common_values(std::string_view policy) const {
    NamedValues values;
    values.add_hash("the model (network, input shape, scalar)", &replica_.fingerprint, sizeof replica_.fingerprint);
    values.of(policy);
    return values;
  }

  /// Adds to them who updates what: behind the options that a message shall name before it.
  void add_placement(NamedValues& values) const {
    std::vector<long> ends;
    for (int k = 0; k < replica_.placement.owners(); ++k) ends.push_back(replica_.placement.part(k).end);
    values.add_hash("the slices that ranks update (their number, and a transform of tensors such as Lars)", ends.data(),
                    ends.size() * sizeof(long));
  }

  /// Throws ArgumentError where the communicator moves memory of another device of that kind than the model's.
  void check_place(const char* policy) const {
    if constexpr (comm::can<Comm, comm::Capability::devices>)
      if (!(comm_->where() == replica_.where))
        throw ArgumentError(
            text("{}: the model is on {} {}, this rank's communicator on {} {}: make the model with {seed, world.where()}",
                 policy, Device::name, replica_.where.ordinal, Device::name, comm_->where().ordinal));
  }
  /// Parameters become the means of all ranks', but for frozen ones.
  void average_weights() {
    replica_.each_trained({0, static_cast<long>(replica_.parameters.size)}, [&](const plan::Range& r) {
      comm_->all_reduce(replica_.parameters.sub(static_cast<std::size_t>(r.begin), static_cast<std::size_t>(r.end)), Mean{});
    });
  }
  /// Parameters and buffers become those of rank 0.
  void broadcast_weights() {
    comm_->broadcast(replica_.parameters, 0);
    if (replica_.buffers.size > 0) comm_->broadcast(replica_.buffers, 0);
  }

 private:
  Comm* comm_;
  Replica<Scalar, Device> replica_;
  double exposed_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::parallel
