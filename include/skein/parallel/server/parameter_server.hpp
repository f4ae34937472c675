// SPDX-License-Identifier: Apache-2.0
// ParameterServer<Comm, Staleness<S>>: the last ranks of a communicator do not train but keep the weights and the optimizer's
// state, a shard each; the others push the gradients of each step and pull weights, without waiting for each other as long as
// none runs more than S steps ahead. Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014; Ho
// et al., NIPS 2013.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../comm_policy_state.hpp"
#include "parameter_server_loop.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The state of a training with servers: of a rank that trains, or of one that serves.
template <class Comm, class Scalar, int Bound> class ParameterServerPolicyState : public CommPolicyState<Comm, Scalar, Cpu> {
  using Base = CommPolicyState<Comm, Scalar, Cpu>;

 public:
  static constexpr Capabilities capabilities =
      Base::capabilities | Capabilities{Capability::synchronizes_gradients, Capability::serves_updates, Capability::owns_part,
                                        Capability::keeps_state};
  static constexpr bool local_sums = true, serves_whole_steps = Bound == 0;
  using Group = decltype(std::declval<Comm&>().split(0, 0));

  ParameterServerPolicyState(Comm& world, const ParameterServerOptions& options, const Replica<Scalar, Cpu>& replica)
      : Base(world, replica), options_(options) {
    if (options.servers < 1 || options.servers >= world.size())
      throw ArgumentError(
          text("ParameterServer: .servers = {} of {} ranks: there must be at least one server, and at least one rank that trains",
               options.servers, world.size()));
    skein::detail::demand_value("ParameterServer", ".rate", options.rate, LateRate::divided, "constant or divided");
    const auto servers = static_cast<std::size_t>(options.servers);
    sends_.resize(2 * servers);
    receives_.resize(2 * servers);
    replies_.resize(servers);
    messages_.resize(servers);
  }

  using Base::comm;
  bool serves() const { return comm().rank() >= ranks(); }
  /// This rank's number among those that train, and how many they are; a server's rank is that in the communicator.
  int rank() const { return comm().rank(); }
  int ranks() const { return comm().size() - options_.servers; }
  int local_ranks() const { return Base::local_ranks() == comm().size() ? ranks() : Base::local_ranks(); }
  /// The sums of the workers' threads are wanted, but leave in after_step, which knows their weight.
  bool synchronizes_gradients() const { return !serves(); }
  void gradient_ready(long, long) {}
  void finish_gradients() {}

  void start() {
    NamedValues values = this->common_values("ParameterServer");
    values.add("the bound", Bound).add(".servers", options_.servers);
    values.add(".rate", options_.rate == LateRate::divided ? "divided" : "constant");
    this->add_placement(values);
    comm().assert_same("the models of ParameterServer", values);
    this->broadcast_weights();
    for (detail::ServerReply& r : replies_) r.version = version_;
    if (!group_) group_.emplace(comm().split(serves() ? 1 : 0, comm().rank()));
  }

  void serve(const UpdateCallback& update) {
    ServerLoop<Comm, Scalar, Bound> loop(comm(), this->replica(), options_, ranks());
    report_ = loop.run(update, version_);
    signal_ = loop.signal();
  }
  int signal() const { return signal_; }
  void set_signal(int signal) { signal_ = signal; }

  /// Waits for the weights that answer the gradients of the step before.
  bool before_step(std::int64_t) { return pull(); }
  /// A file within an epoch has the weights that answer the last gradients.
  void before_save() {
    if (!serves()) pull();
  }
  /// Gradients leave for the servers.
  bool after_step(const StepDone& done) {
    const double weight = static_cast<double>(this->replica().gradients[static_cast<std::size_t>(this->replica().stored) + 1]);
    for (int s = 0; s < options_.servers; ++s) {
      say(s, {Message::Push, comm().rank(), done.step, version_of(s), done.expected_weight, weight});
      (void)sends_[at(s) + 1].emplace(
          comm().isend(DeviceSpan<const Scalar>(part(this->replica().gradients, s)), server(s), Message::values_tag));
    }
    awaited_ = true;
    return false;
  }
  /// All workers go into the evaluation with the same weights.
  bool epoch_ends(std::int64_t) {
    pull();
    if (Bound > 0) {
      say_away();            // who waits for another here is not the one that is late
      trainers().barrier();  // every worker's gradients are in the weights now
      ask();
    }
    say_away();
    return true;
  }
  /// Collective, servers too: parameters, buffers and the report become the same on all ranks.
  bool finish() {
    if (!serves()) {
      const int signal = std::exchange(signal_, 0);  // before the last answers: what servers hear now ends no worker's fit
      pull();
      signal_ = 0;
      average_buffers();
      for (int s = 0; s < options_.servers; ++s) say(s, {Message::Done, comm().rank(), signal, version_, 1, 0});
      wait_for_sends();
    }
    for (int s = 0; s < options_.servers; ++s) comm().broadcast(part(this->replica().parameters, s), server(s));
    if (this->replica().buffers.size > 0) comm().broadcast(this->replica().buffers, 0);
    double all[7] = {report_.updates, report_.mean_staleness, report_.max_staleness,        report_.max_ahead,
                     report_.busy,    report_.seconds,        static_cast<double>(version_)};
    comm().broadcast(DeviceSpan<double>(all, 7), server(0));
    report_ = {all[0], all[1], all[2], all[3], all[4], all[5]};
    version_ = static_cast<std::int64_t>(all[6]);
    return true;
  }
  /// An array of the optimizer's state as the servers have it, whole, on rank 0: within a fit, where the servers serve, and after
  /// it, where they are called too.
  void gather(DeviceSpan<Scalar> own, DeviceSpan<Scalar> all) {
    if (serves()) {
      Message asked;
      auto request = comm().irecv(DeviceSpan<Message>(&asked, 1), 0, Message::tag);
      wait_with_deadline(comm(), request, comm::deadline(comm()),
                         [] { return std::string("ParameterServer: save is a call of all ranks: rank 0 has not called it"); });
      comm().send(own, 0, Message::state_tag);
    } else if (rank() == 0) {
      for (int s = 0; s < options_.servers; ++s) {
        say(s, {Message::State, 0, 0, version_, 1, 0});
        comm().recv(part(all, s), server(s), Message::state_tag);
      }
      wait_for_sends();  // an exception that passes finds nothing under way
    }
  }

  /// Among those that train. A server has nothing to add.
  void average_buffers() {
    if (!serves() && ranks() > 1 && this->replica().buffers.size > 0) trainers().all_reduce(this->replica().buffers, Mean{});
  }
  /// Among the servers: they call it for the same updates in the same order.
  void sum_over_owners(std::span<double> values) {
    if (serves() && options_.servers > 1) group_->all_reduce(DeviceSpan<double>(values.data(), values.size()), Sum{});
  }
  void reduce(std::span<double> values) {
    if (!serves() && ranks() > 1 && !values.empty())
      trainers().all_reduce(DeviceSpan<double>(values.data(), values.size()), Sum{});
  }
  void barrier() {
    if (!serves() && ranks() > 1) trainers().barrier();
  }

  SameWeights same_weights() const { return SameWeights::after_fit; }

  /// What the servers did in the last fit; on all ranks once it has ended.
  const ServerReport& report() const { return report_; }
  /// The parameters that server s keeps.
  plan::Range shard(int s) const { return this->replica().placement.part(server(s)); }

  std::int64_t updates() const { return version_; }
  void forget() { version_ = 0; }
  /// What serialize() saves is of this policy.
  static std::string saved_as() { return "ParameterServer"; }
  template <class Archive> void serialize(Archive& a, unsigned) { a& version_; }

 private:
  using Message = detail::ServerMessage;
  using Send = decltype(std::declval<Comm&>().isend(std::declval<DeviceSpan<const Scalar>>(), 0, 0));

  static std::size_t at(int s) { return 2 * static_cast<std::size_t>(s); }
  int server(int s) const { return ranks() + s; }
  template <class T> DeviceSpan<T> part(DeviceSpan<T> all, int s) const { return detail::piece(all, shard(s)); }
  /// Updates that the weights of server s have seen.
  std::int64_t version_of(int s) const { return replies_[static_cast<std::size_t>(s)].version; }
  void say(int s, const Message& m) {
    Message& kept = messages_[static_cast<std::size_t>(s)];
    if (auto& before = sends_[at(s)]) before->wait(), before.reset();
    kept = m;
    (void)sends_[at(s)].emplace(comm().isend(DeviceSpan<const Message>(&kept, 1), server(s), Message::tag));
  }
  /// No gradients come until the next epoch.
  void say_away() {
    for (int s = 0; s < options_.servers; ++s) say(s, {Message::Away, comm().rank(), 0, version_, 1, 0});
  }
  /// Those that train. What was sent has been read before: an exception that passes a wait among them finds nothing under way in
  /// the whole, whose ranks hear of who is missing then, and not of this rank.
  Group& trainers() { return wait_for_sends(), *group_; }
  /// What was sent has been read.
  void wait_for_sends() {
    for (auto& r : sends_)
      if (r) r->wait(), r.reset();
  }
  /// The weights as they are now.
  void ask() {
    for (int s = 0; s < options_.servers; ++s) say(s, {Message::Pull, comm().rank(), 0, version_, 1, 0});
    awaited_ = true;
    pull();
  }
  bool pull() {
    if (!awaited_) return false;
    awaited_ = false;
    const auto exposed = this->waiting();
    for (int s = 0; s < options_.servers; ++s) {
      detail::ServerReply& reply = replies_[static_cast<std::size_t>(s)];
      (void)receives_[at(s)].emplace(comm().irecv(DeviceSpan<detail::ServerReply>(&reply, 1), server(s), Message::reply_tag));
      (void)receives_[at(s) + 1].emplace(comm().irecv(part(this->replica().parameters, s), server(s), Message::reply_values_tag));
    }
    // The servers know which worker is late: their deadline passes first.
    const double limit = 1.25 * comm::deadline(comm()) + 0.25;
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      wait_with_deadline(comm(), *receives_[i], limit, [&] {
        const comm::RankNames names = comm::names_of(comm());
        return "ParameterServer: no weights came to " + names.name(comm().rank()) + ": " +
               names.name(server(static_cast<int>(i / 2))) + ", a server, did not answer";
      });
      receives_[i].reset();
    }
    version_ = replies_[0].version;
    for (const detail::ServerReply& r : replies_) signal_ = std::max(signal_, static_cast<int>(r.signal));
    wait_for_sends();
    return true;
  }

  ParameterServerOptions options_;
  std::optional<Group> group_;                         // of those that train, and of the servers
  std::vector<std::optional<Send>> sends_, receives_;  // of server s: at 2 s the message, behind it the values
  std::vector<detail::ServerReply> replies_;
  std::vector<Message> messages_;  // to server s, until it has read it
  std::int64_t version_ = 0;
  int signal_ = 0;
  bool awaited_ = false;  // gradients have gone, weights have not come
  ServerReport report_;
};

/// Training with servers, which hold the weights; the communicator must outlive it. All ranks make the trainer and call fit. On a
/// server, fit serves until the workers have finished and returns an empty history, and evaluate returns empty scores. Afterwards
/// all ranks have the final weights. `Bound` is Staleness<S>; without a bound, workers wait for each other at the end of an
/// epoch, and about once a second where a fit looks for signals: ParameterServer{world, {.servers = 2}, Staleness<4>{}}. Host
/// only.
template <class Comm, class Bound = Staleness<unbounded>> class ParameterServer : public PolicyBase {
 public:
  using communicator = Comm;
  explicit ParameterServer(Comm& comm, ParameterServerOptions options = {}, Bound = {}) : comm_(&comm), options_(options) {}
  explicit ParameterServer(Comm& comm, Bound) : ParameterServer(comm) {}

  /// Servers have a slice each, those that train nothing.
  plan::Placement placement(const plan::ArenaTable& table) const {
    const int servers = std::clamp(options_.servers, 0, comm_->size());
    std::vector<plan::Range> parts(static_cast<std::size_t>(comm_->size() - servers));
    if (servers > 0)
      for (const plan::Range& r : plan::slices(table, servers)) parts.push_back(r);
    return plan::Placement::sliced(std::move(parts), comm_->rank());
  }
  template <class R> auto bind(const R& replica) const {
    return ParameterServerPolicyState<Comm, typename R::Scalar, Bound::bound>(*comm_, options_, replica);
  }
  template <class Device> static constexpr bool fits =
      comm::sound<Comm, Device>&& std::same_as<Device, Cpu>&& Sends<Comm>&& Splits<Comm>&& AllReduces<Comm>;
  template <class Device> static consteval void assert_fits() {
    static_assert(std::same_as<Device, Cpu>,
                  "ParameterServer keeps weights and optimizer on servers of the host: its models are on the Cpu");
    assert_communicator<Comm, Device>();
    static_assert(fits<Device>,
                  "ParameterServer needs a communicator with send, recv, split and all_reduce: ThreadComm, MpiComm or GlooComm");
  }
  Comm& comm() const { return *comm_; }

 private:
  Comm* comm_;
  ParameterServerOptions options_;
};
/// Without a Staleness it is refused.
template <class Comm, class Bound>
requires(!IsStaleness<Bound>) class ParameterServer<Comm, Bound> : public detail::RefusedPolicy {
  static_assert(
      IsStaleness<Bound>,
      "ParameterServer takes behind the communicator its options and a Staleness, in this order, as in "
      "ParameterServer{world, {.servers = 2}, Staleness<4>{}}: one of what it is given is none of these, or is elsewhere");

 public:
  template <class... Given> explicit ParameterServer(Comm&, const Given&...) {}
  template <class... Given> explicit ParameterServer(Comm&, ParameterServerOptions, const Given&...) {}
};
template <class Comm> ParameterServer(Comm&) -> ParameterServer<Comm>;
template <class Comm> ParameterServer(Comm&, ParameterServerOptions) -> ParameterServer<Comm>;
template <class Comm, int Steps> ParameterServer(Comm&, Staleness<Steps>) -> ParameterServer<Comm, Staleness<Steps>>;
template <class Comm, int Steps> ParameterServer(Comm&, ParameterServerOptions, Staleness<Steps>)
    -> ParameterServer<Comm, Staleness<Steps>>;
template <class Comm, class... Given> ParameterServer(Comm&, Given...) -> ParameterServer<Comm, detail::NotTaken<Given...>>;
template <class Comm, class... Given> ParameterServer(Comm&, ParameterServerOptions, Given...)
    -> ParameterServer<Comm, detail::NotTaken<Given...>>;

}  // namespace skein::inline SKEIN_ABI::parallel
