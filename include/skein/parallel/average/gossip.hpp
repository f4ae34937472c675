// SPDX-License-Identifier: Apache-2.0
// Gossip<Comm, Staleness<S>>: no server and no all-reduce: each rank steps with its own gradients and averages its weights with
// those of its two neighbours on a ring. Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", NIPS
// 2017.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../comm/tags.hpp"
#include "../comm_policy_state.hpp"
#include "../staleness.hpp"
#include "../wait_with_deadline.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The state of a training by Gossip on one rank: its neighbours' latest weights, and what is on its way to them.
template <class Comm, class Scalar, int Bound> class GossipPolicyState : public CommPolicyState<Comm, Scalar, Cpu> {
  using Base = CommPolicyState<Comm, Scalar, Cpu>;

 public:
  static constexpr Capabilities capabilities = Base::capabilities | Capabilities{Capability::averages_weights};
  static constexpr bool local_sums = true;

  GossipPolicyState(Comm& world, const Replica<Scalar, Cpu>& replica) : Base(world, replica) {
    const int n = world.size();
    if (n > 1) peers_.emplace_back().rank = (world.rank() + n - 1) % n;
    if (n > 2) peers_.emplace_back().rank = (world.rank() + 1) % n;
    const std::size_t size = count() + (sizeof(std::int64_t) + sizeof(Scalar) - 1) / sizeof(Scalar);
    for (Peer& p : peers_)
      for (auto* buffer : {&p.out, &p.in, &p.latest}) buffer->resize(size);
  }

  GossipPolicyState(GossipPolicyState&&) = default;
  /// After a fit that an exception has ended: each rank takes what its neighbours have begun, so that nothing waits where it has
  /// ended on all. One that goes on fails where it needs this rank.
  ~GossipPolicyState() {
    if (Bound == 0 || step_ == 0 || peers_.empty() || std::uncaught_exceptions() > exceptions_) return;
    try {
      part(ended_by_exception - step_);
    } catch (...) {}  // another rank has failed: who calls it next hears why
  }

  void start() {
    if (peers_.empty()) return;
    flush();
    for (Peer& p : peers_) p.fresh = false;  // of a fit that an exception ended: they are averaged with no others
    this->comm().assert_same("the models of Gossip", this->common_values("Gossip").add("the bound", Bound));
    this->broadcast_weights();
  }

  /// Weights leave for the neighbours; those that have come are averaged with this rank's. Waits for a neighbour of which nothing
  /// is known that is at most Bound steps old. With Bound 0 all ranks' weights keep their mean.
  bool after_step(const StepDone&) {
    if (peers_.empty()) return false;
    const auto exposed = this->waiting();
    ++step_;
    for (Peer& p : peers_) {
      p.newest = step_;
      if (Bound > 0 && !p.receive && !p.over()) listen(p);
    }
    for (Peer& p : peers_) {
      while (p.heard < step_ && step_ - p.heard > Bound) receive(p);
      accept_all(p);
      ahead_ = std::max(ahead_, step_ - p.heard);
    }
    // Another policy may hold this rank until its neighbours have come. What has begun leaves meanwhile, but what follows it is
    // begun here: what those wait for has left.
    for (Peer& p : peers_) wait(p, p.send, [&] { return step_ - p.left <= Bound; });
    average();
    return true;
  }

  /// Collective: all ranks end with the mean of their weights.
  bool finish() {
    if (peers_.empty()) return false;
    check_neighbors();
    part(last);
    check_neighbors();
    for (Peer& p : peers_) {
      p.heard = p.begun = p.left = p.newest = 0;
      p.fresh = false;
    }
    step_ = 0;
    this->average_weights();
    return true;
  }

  /// Ranks wait for each other, all after the same step: what neighbours wait for has left before, and theirs has come.
  void reduce(std::span<double> values) { flush(), Base::reduce(values); }
  void average_buffers() { flush(), Base::average_buffers(); }
  void barrier() { flush(), Base::barrier(); }

  SameWeights same_weights() const { return SameWeights::after_fit; }
  /// Steps that this rank was ahead of the weights that it knew of a neighbour, at most.
  std::int64_t max_ahead() const { return ahead_; }

 private:
  using Request = decltype(std::declval<Comm&>().irecv(std::declval<DeviceSpan<Scalar>>(), 0, 0));
  static constexpr int tag = comm::tags::gossip;
  /// In place of a step, of a rank's last message: of a fit that has come to its end; less the step behind which it was ended.
  static constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max(), ended_by_exception = -1;
  struct Peer {
    int rank = 0;
    std::vector<Scalar> out, in, latest;  // weights, and behind them their step
    std::optional<Request> send, receive;
    std::int64_t newest = 0, begun = 0, left = 0;  // steps: that is to be sent; whose message was begun; that has left, whole
    std::int64_t heard = 0;                        // of the latest that came
    bool fresh = false;                            // latest has not been averaged yet
    bool ended = false;                            // its fit, by an exception: it sends nothing any more
    bool over() const { return ended || heard == last; }
  };

  std::size_t count() const { return static_cast<std::size_t>(this->replica().stored); }

  /// What is newest leaves as soon as what left before has arrived; a neighbour that is slow misses what lies between.
  void send(Peer& p) {
    if (p.send && p.send->poll()) p.send.reset(), p.left = p.begun;
    if (p.send || p.begun == p.newest) return;
    std::copy_n(this->replica().parameters.data, count(), p.out.data());
    std::memcpy(p.out.data() + count(), &p.newest, sizeof p.newest);
    p.begun = p.newest;
    (void)p.send.emplace(this->comm().isend(DeviceSpan<const Scalar>(p.out.data(), p.out.size()), p.rank, tag));
  }
  /// All neighbours do: the last message has left for each, and theirs has come.
  void part(std::int64_t message) {
    for (Peer& p : peers_) p.newest = message;
    for (Peer& p : peers_)
      while (!p.over()) receive(p);
    for (Peer& p : peers_) wait(p, p.send, [&] { return p.left == message; });
  }
  /// Ends all ranks where a neighbour's fit has been ended, and this one's goes on: that rank makes no call that this one does.
  void check_neighbors() {
    for (const Peer& p : peers_) check_neighbor(p);
  }
  void check_neighbor(const Peer& p) {
    if (!p.ended) return;
    const comm::RankNames names = this->rank_names();
    comm::fail_all(this->comm(), text("Gossip: an exception has ended the fit of {} after step {}, and that of {} goes on: the "
                                      "reason is what that rank says",
                                      names.name(p.rank), p.heard, names.name(this->rank())));
  }
  /// A neighbour's newest leaves once what it sent before has been taken: each takes what comes until its neighbours' newest.
  void flush() {
    check_neighbors();
    for (Peer& p : peers_)
      while (p.heard < step_) receive(p);
    for (Peer& p : peers_)
      if (p.left < p.newest) wait(p, p.send, [&] { return p.left == p.newest; });
    for (Peer& p : peers_) accept_all(p);
    check_neighbors();  // of what has come meanwhile; who waits in a collective hears no more of it
  }
  void listen(Peer& p) { (void)p.receive.emplace(this->comm().irecv(DeviceSpan<Scalar>(p.in.data(), p.in.size()), p.rank, tag)); }
  void receive(Peer& p) {
    check_neighbor(p);
    if (!p.receive) listen(p);
    wait(p, p.receive, [&] { return p.receive->done(); });
    accept(p);
  }
  void accept(Peer& p) {
    std::swap(p.in, p.latest);
    std::memcpy(&p.heard, p.latest.data() + count(), sizeof p.heard);
    p.ended = p.heard < 0;
    p.fresh = !p.ended;
    if (p.ended) p.heard = ended_by_exception - p.heard;
    p.receive.reset();
    if (Bound > 0 && !p.over()) listen(p);
  }
  /// What has come of those that are listened for beside the steps.
  void accept_all(Peer& p) {
    if constexpr (Bound > 0)
      while (p.receive && p.receive->poll()) accept(p);
  }
  /// Waits for a message from or to p; meanwhile whatever else can leave or come does: p may wait for a rank that waits for it.
  template <class Done> void wait(Peer& p, std::optional<Request>& request, Done&& done) {
    comm::Deadline timer(comm::deadline(this->comm()));
    for (bool late = false;;) {
      bool more = false;
      for (Peer& q : peers_) {
        send(q);
        more = more || q.begun != q.newest;
        if (&q.receive != &request) accept_all(q);
      }
      if (done()) return;
      const auto interval = timer.sleep_interval();
      if (request && request->wait_for(more ? std::min(interval, std::chrono::nanoseconds(200000)) : interval)) continue;
      timer.start();
      if (timer.over() && std::exchange(late, true))  // what came while this rank stood still has been looked for again
        comm::fail_all(this->comm(), late_text(p) + " within " + comm::seconds_text(timer.limit()));
    }
  }
  /// A neighbour has not come, nor gone where this rank's own fit has been ended.
  std::string late_text(const Peer& p) const {
    const comm::RankNames names = this->rank_names();
    if (p.newest >= 0)
      return "Gossip: " + names.name(this->rank()) + " waits for its neighbour: " + names.name(p.rank) + " did not arrive";
    return text("Gossip: an exception has ended the fit of {} after step {}, and {} did not end its own",
                names.name(this->rank()), ended_by_exception - p.newest, names.name(p.rank));
  }
  void average() {
    Scalar* x = this->replica().parameters.data;
    const Scalar *a = nullptr, *b = nullptr;
    for (Peer& p : peers_)
      if (std::exchange(p.fresh, false)) (a ? b : a) = p.latest.data();
    const Scalar third = Scalar{1} / Scalar{3}, half = Scalar{1} / Scalar{2};
    this->replica().each_trained({0, this->replica().stored}, [&](const plan::Range& r) {
      if (b)
        for (long i = r.begin; i < r.end; ++i) x[i] = (a[i] + x[i] + b[i]) * third;
      else if (a)
        for (long i = r.begin; i < r.end; ++i) x[i] = (a[i] + x[i]) * half;
    });
  }

  std::vector<Peer> peers_;
  std::int64_t step_ = 0, ahead_ = 0;
  int exceptions_ = std::uncaught_exceptions();  // when it was made
};

/// Decentralised training on a ring: each rank averages its weights with those of its two neighbours. At the end of a fit all
/// ranks get the mean of all weights; until then each rank has its own weights, which a validation uses. The optimizer's state is
/// never shared. With a bound above 0, Gossip{world, Staleness<2>{}}, a rank does not wait for a late neighbour. The communicator
/// must outlive the training. Host only.
template <class Comm, class Bound = Staleness<0>> class Gossip : public PolicyBase {
 public:
  using communicator = Comm;
  explicit Gossip(Comm& comm, Bound = {}) : comm_(&comm) {}

  template <class R> auto bind(const R& replica) const {
    return GossipPolicyState<Comm, typename R::Scalar, Bound::bound>(*comm_, replica);
  }
  template <class Device> static constexpr bool fits =
      comm::sound<Comm, Device>&& std::same_as<Device, Cpu>&& Sends<Comm>&& AllReduces<Comm>;
  template <class Device> static consteval void assert_fits() {
    static_assert(std::same_as<Device, Cpu>, "Gossip averages weights on the host: its models are on the Cpu");
    assert_communicator<Comm, Device>();
    static_assert(fits<Device>, "Gossip needs a communicator with send, recv and all_reduce: ThreadComm, MpiComm or GlooComm");
  }
  Comm& comm() const { return *comm_; }

 private:
  Comm* comm_;
};
/// Without a Staleness it is refused.
template <class Comm, class Bound>
requires(!IsStaleness<Bound>) class Gossip<Comm, Bound> : public detail::RefusedPolicy {
  static_assert(
      IsStaleness<Bound>,
      "Gossip takes behind the communicator a Staleness and nothing else: Gossip{world}, Gossip{world, Staleness<2>{}}");

 public:
  template <class... Given> explicit Gossip(Comm&, const Given&...) {}
};
template <class Comm> Gossip(Comm&) -> Gossip<Comm>;
template <class Comm, int Steps> Gossip(Comm&, Staleness<Steps>) -> Gossip<Comm, Staleness<Steps>>;
template <class Comm, class... Given> Gossip(Comm&, Given...) -> Gossip<Comm, detail::NotTaken<Given...>>;

}  // namespace skein::inline SKEIN_ABI::parallel
