// SPDX-License-Identifier: Apache-2.0
// ServerLoop: what one server of a ParameterServer does while the workers train: it takes their gradients, updates its shard and
// sends the weights back as soon as the bound of staleness allows.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "../../comm/messages.hpp"
#include "../../core/clock.hpp"
#include "../policy.hpp"
#include "../staleness.hpp"
#include "../wait_with_deadline.hpp"
#include "parameter_server_options.hpp"
#include "server_messages.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Serves workers 0 to `workers` - 1 of the communicator, until all have said that they are done. Memory: with a bound of 0 one
/// shard of gradients a worker, else one of weights a worker, since a reply may be under way while the next update is made.
template <class Comm, class Scalar, int Bound> class ServerLoop {
 public:
  ServerLoop(Comm& comm, const Replica<Scalar, Cpu>& replica, const ParameterServerOptions& options, int workers)
      : comm_(&comm), replica_(&replica), options_(options), shard_(replica.placement.own()),
        workers_(static_cast<std::size_t>(workers)), deadline_(comm::deadline(comm)) {
    for (Worker& w : workers_) w.copy.resize(count());
  }

  /// The signal that ended the workers' fit; 0: none.
  int signal() const { return signal_; }
  /// `version`: updates of the training so far, which Adam counts; goes on counting.
  ServerReport run(const UpdateCallback& update, std::int64_t& version) {
    update_ = &update;
    version_ = version;
    const double begin = seconds_now();
    open_ = static_cast<int>(workers_.size());
    for (Worker& w : workers_) w.since = clock_.now();
    while (open_ > 0) {
      Message m;
      next(m);
      const double heard = seconds_now();
      handle(m);
      report_.busy += seconds_now() - heard;
    }
    for (Worker& w : workers_) w.wait_for_sends();
    version = version_;
    report_.seconds = seconds_now() - begin;
    if (pushes_ > 0) report_.mean_staleness = late_ / static_cast<double>(pushes_);
    return report_;
  }

 private:
  using Message = detail::ServerMessage;
  using Send = decltype(std::declval<Comm&>().isend(std::declval<DeviceSpan<const Scalar>>(), 0, 0));
  struct Worker {
    long steps = 0;  // pushes so far
    bool waits = false, done = false, pushed = false, away = false;
    Message push;
    std::vector<Scalar> copy;  // bound 0: its gradients; else the weights that travel to it
    std::optional<Send> reply, values;
    detail::ServerReply text;
    double since = 0;  // of the clock: its last message, or the reply to it
    /// The reply has gone: a worker that pushes again has it.
    void wait_for_sends() {
      for (auto* r : {&reply, &values})
        if (*r) (*r)->wait(), r->reset();
    }
  };

  std::size_t count() const { return static_cast<std::size_t>(shard_.end - shard_.begin); }
  template <class T> static DeviceSpan<T> one(T& x) { return {&x, 1}; }
  DeviceSpan<Scalar> gradients() const { return detail::piece(replica_->gradients, shard_); }
  DeviceSpan<Scalar> weights() const { return detail::piece(replica_->parameters, shard_); }

  void next(Message& m) {
    auto request = comm_->irecv(one(m), any_rank, Message::tag);
    const double begin = clock_.now();
    while (!request.wait_for(comm::Deadline(deadline_).sleep_interval())) name_the_missing(begin);
  }
  /// Since when a worker waits for this one, which is so many steps behind it; `now` where none does.
  double awaited_since(const Worker& behind, double now) const {
    for (const Worker& w : workers_)
      if (w.waits && w.steps - behind.steps > static_cast<long>(Bound)) now = std::min(now, w.since);
    return now;
  }
  /// A worker that computes for longer than the deadline while others wait for it, or while nobody says anything: for ten times
  /// as long where all evaluate. Where none waits here, one may wait for another in a call of the workers, which names that one
  /// alone, and whose deadline passes first.
  void name_the_missing(double begin) {
    const double now = clock_.now();
    const bool waited_for = std::any_of(workers_.begin(), workers_.end(), [](const Worker&w) { return w.waits; }),
               evaluate = std::all_of(workers_.begin(), workers_.end(), [](const Worker&w) { return w.done || w.away; });
    if (!waited_for && now - begin <= (evaluate ? 10 * deadline_ : 1.25 * deadline_ + 0.25)) return;
    const auto missing = [&](int r) {
      if (r >= static_cast<int>(workers_.size())) return false;
      const Worker& w = workers_[static_cast<std::size_t>(r)];
      if (w.done || w.waits) return false;
      if (!waited_for) return (evaluate || !w.away) && now - w.since > deadline_;
      const double since = awaited_since(w, now);  // who is away has left its epoch, and may wait there for one that is behind
      return since < now && now - (w.away ? std::max(w.since, since) : w.since) > deadline_;
    };
    bool any = false;
    for (int r = 0; r < static_cast<int>(workers_.size()); ++r) any = any || missing(r);
    if (!any) return;
    const comm::RankNames names = comm::names_of(*comm_);
    comm::fail_all(*comm_, "ParameterServer: no gradients came to " + names.name(comm_->rank()) + ", a server: " +
                               comm::ranks_text(names, missing) + " did not arrive within " + comm::seconds_text(deadline_));
  }

  void handle(const Message& m) {
    Worker& w = workers_[static_cast<std::size_t>(m.worker)];
    w.since = clock_.now();
    w.away = m.kind == Message::Away || (w.away && m.kind == Message::State);
    switch (m.kind) {
      case Message::Push:
        push(w, m);
        break;
      case Message::Pull:
        reply(w);
        break;
      case Message::State: {  // one array after the other, each time somebody saves
        const void* array = update_->state(update_->object, array_++ % update_->arrays);
        comm_->send(DeviceSpan<const Scalar>(static_cast<const Scalar*>(array), count()), m.worker, Message::state_tag);
        break;
      }
      case Message::Away:
        break;
      case Message::Done:
        w.done = true;
        signal_ = std::max(signal_, static_cast<int>(m.step));
        --open_;
        break;
    }
    if constexpr (Bound == 0) combine();
    release();
  }

  void push(Worker& w, const Message& m) {
    w.wait_for_sends();
    const std::int64_t steps_before = m.step - 1;  // of a training that began under another policy, too
    version_ = std::max(version_, steps_before);
    ++w.steps;
    w.waits = true;
    w.push = m;
    if constexpr (Bound == 0) {
      comm_->recv(DeviceSpan<Scalar>(w.copy.data(), w.copy.size()), m.worker, Message::values_tag);
      w.pushed = true;
    } else {
      comm_->recv(gradients(), m.worker, Message::values_tag);
      const double late = static_cast<double>(version_ - std::max(m.version, steps_before));
      late_ += late;
      ++pushes_;
      report_.max_staleness = std::max(report_.max_staleness, late);
      if (m.weight > 0)
        apply(m.step, m.expected_weight / m.weight, options_.rate == LateRate::divided ? 1 / std::max(1.0, late) : 1);
    }
  }
  void apply(std::int64_t step, double scale, double rate = 1) {
    ++version_;
    report_.updates += 1;
    (*update_)({shard_, version_, step, scale, rate});
  }

  /// Synchronous: the gradients of all that train, once they are there, in the order of the ranks, as an all-reduce adds them.
  void combine() {
    const Worker* first = nullptr;
    for (const Worker& w : workers_) {
      if (!w.pushed && !w.done) return;
      if (w.pushed && !first) first = &w;
    }
    if (!first) return;
    const DeviceSpan<Scalar> sum = gradients();
    Scalar weight{};
    for (Worker& w : workers_) {
      if (!w.pushed) continue;
      const Scalar f = static_cast<Scalar>(w.push.expected_weight / first->push.expected_weight);
      if (&w == first)
        for (std::size_t i = 0; i < sum.size; ++i) sum[i] = w.copy[i];
      else
        for (std::size_t i = 0; i < sum.size; ++i) sum[i] += f * w.copy[i];
      weight += static_cast<Scalar>(w.push.weight);
      w.pushed = false;
    }
    apply(first->push.step, weight > 0 ? first->push.expected_weight / static_cast<double>(weight) : 0);  // as other ranks do
  }

  /// Weights to all that wait and are not too far ahead of the slowest.
  void release() {
    long slowest = std::numeric_limits<long>::max(), fastest = 0;
    for (const Worker& w : workers_) {
      if (w.done) continue;
      slowest = std::min(slowest, w.steps);
    }
    for (Worker& w : workers_) {
      if (w.done || !w.waits || w.pushed || w.steps - slowest > static_cast<long>(Bound)) continue;
      fastest = std::max(fastest, w.steps);
      w.waits = false;
      reply(w);
    }
    if (fastest > 0) report_.max_ahead = std::max(report_.max_ahead, static_cast<double>(fastest - slowest));
  }
  void reply(Worker& w) {
    w.wait_for_sends();
    const int to = static_cast<int>(&w - workers_.data());
    w.text = {version_, update_->signal()};
    DeviceSpan<const Scalar> values = weights();
    if constexpr (Bound != 0) {
      std::copy(values.begin(), values.end(), w.copy.begin());
      values = {w.copy.data(), w.copy.size()};
    }
    (void)w.reply.emplace(comm_->isend(one(w.text), to, Message::reply_tag));
    (void)w.values.emplace(comm_->isend(values, to, Message::reply_values_tag));
    w.since = clock_.now();
  }

  Comm* comm_;
  const Replica<Scalar, Cpu>* replica_;
  ParameterServerOptions options_;
  plan::Range shard_;
  std::vector<Worker> workers_;
  double deadline_;
  comm::AwakeClock clock_ = comm::AwakeClock::of(deadline_);
  const UpdateCallback* update_ = nullptr;
  std::int64_t version_ = 0;
  int open_ = 0, array_ = 0, signal_ = 0;
  long pushes_ = 0;
  double late_ = 0;
  ServerReport report_;
};

}  // namespace skein::inline SKEIN_ABI::parallel
