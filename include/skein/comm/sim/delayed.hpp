// SPDX-License-Identifier: Apache-2.0
// A real communicator with a slow network in front of it: ranks are threads, clocks are the machine's, and every message and
// collective is complete no earlier than its alpha and beta allow. For trying policies over a network that one does not have, and
// for validating the simulator: what SimComm predicts of a program, this measures.
#pragma once
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "../concepts.hpp"
#include "../messages.hpp"
#include "../progress.hpp"
#include "tables.hpp"

namespace skein::inline SKEIN_ABI {

/// The slow network, shared by the ranks of one spawn: make it before, and a Delayed of each rank's communicator with it. With
/// `collective` > 0 every collective takes that many seconds; else what its table takes on these links, once the last rank has
/// come.
class SlowNetwork {
 public:
  using Clock = std::chrono::steady_clock;
  /// Throws ArgumentError for times that are negative, or no finite ones.
  explicit SlowNetwork(plan::Network links, double collective = 0);
  SlowNetwork(const SlowNetwork&) = delete;

  double message_seconds(int from, int to, double bytes) const;
  double collective_seconds(int ranks, const comm::CollectiveCall& o) const;

  /// A message has departed; when the oldest of these two ranks and tag did. {}: it went past the delay.
  void departed(int from, int to, int tag, Clock::time_point when);
  Clock::time_point departure(int from, int to, int tag);
  /// A rank has come to a collective; when the last one did, once all have.
  void entered(std::uint64_t call, Clock::time_point when);
  Clock::time_point last(std::uint64_t call, int ranks);

 private:
  struct Entry {
    Clock::time_point last{};
    int asked = 0;
  };
  plan::Network links_;
  double collective_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, std::deque<Clock::time_point>> departures_;
  std::map<std::uint64_t, Entry> entries_;
};

namespace comm {
/// The inner engine's calls, each with the time before which it is not complete.
template <class Inner> class DelayedEngine {
 public:
  using Clock = SlowNetwork::Clock;
  static constexpr bool starts_by_waiting = comm::starts_by_waiting<Inner>;
  DelayedEngine(Inner& inner, SlowNetwork& network, int rank, int ranks)
      : inner_(&inner), network_(&network), rank_(rank), ranks_(ranks) {}

  void run(const CollectiveCall& o) {
    Ticket t = start(o);
    wait(t);
  }
  Ticket start(const CollectiveCall& o) {
    const std::uint64_t call = calls_++;
    network_->entered(call, Clock::now());
    return keep({Kind::collective, inner_->start(o), call, 0, 0, network_->collective_seconds(ranks_, o)});
  }
  Ticket start_send(const void* data, std::size_t bytes, int to, int tag) {
    const double seconds = network_->message_seconds(rank_, to, static_cast<double>(bytes));
    const Clock::time_point departs = std::max(Clock::now(), send_free_);
    send_free_ = departs + in(seconds);
    network_->departed(rank_, to, tag, departs);
    Pending p{Kind::send, inner_->start_send(data, bytes, to, tag), 0, tag, bytes, seconds};
    p.due = send_free_;
    p.known = true;
    return keep(p);
  }
  Ticket start_recv(void* data, std::size_t bytes, int from, int tag) {
    return keep({Kind::receive, inner_->start_recv(data, bytes, from, tag), 0, tag, bytes, 0});
  }
  bool test(Ticket& t) {
    const auto found = pending_.find(t.number);
    if (found == pending_.end()) return true;
    Pending& p = found->second;
    if (!p.inner_done && inner_->test(p.inner)) arrived(p);
    if (!p.inner_done || Clock::now() < p.due) return false;
    t.peer = p.inner.peer;
    pending_.erase(found);
    return true;
  }
  void wait(Ticket& t) {
    const auto found = pending_.find(t.number);
    if (found == pending_.end()) return;
    Pending& p = found->second;
    if (!p.inner_done) {
      inner_->wait(p.inner);
      arrived(p);
    }
    std::this_thread::sleep_until(p.due);
    t.peer = p.inner.peer;
    pending_.erase(found);
  }
  void progress() { inner_->progress(); }
  void abandon() { inner_->abandon(); }

 private:
  enum class Kind { collective, send, receive };
  struct Pending {
    Kind kind;
    Ticket inner;
    std::uint64_t call = 0;
    int tag = 0;
    std::size_t bytes = 0;
    double seconds = 0;
    Clock::time_point due{};
    bool known = false, inner_done = false;
  };
  static Clock::duration in(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  Ticket keep(Pending p) {
    const std::uint64_t number = ++numbers_;
    const int peer = p.inner.peer;
    pending_.emplace(number, p);
    return {number, 0, peer};
  }
  /// The values are there: from now on only time is missing. Collectives follow each other over the links, in their order: those
  /// before this one are complete too.
  void arrived(Pending& p) {
    if (p.kind == Kind::collective)
      for (auto& entry : pending_) {
        Pending& before = entry.second;
        if (&before == &p) break;
        if (before.kind != Kind::collective || before.inner_done) continue;
        inner_->wait(before.inner);
        account(before);
      }
    account(p);
  }
  void account(Pending& p) {
    p.inner_done = true;
    if (p.kind == Kind::collective) {
      p.due = std::max(network_->last(p.call, ranks_), free_) + in(p.seconds);
      free_ = p.due;
    } else if (p.kind == Kind::receive) {
      const int from = p.inner.peer;
      const Clock::time_point departed = network_->departure(from, rank_, p.tag);
      if (departed == Clock::time_point{}) return;  // it went past the delay
      p.due = std::max(departed, receive_free_) + in(network_->message_seconds(from, rank_, static_cast<double>(p.bytes)));
      receive_free_ = p.due;
    }
  }

  Inner* inner_;
  SlowNetwork* network_;
  int rank_, ranks_;
  std::uint64_t numbers_ = 0, calls_ = 0;
  std::map<std::uint64_t, Pending> pending_;
  Clock::time_point send_free_{}, receive_free_{}, free_{};
};
}  // namespace comm

/// The communicator of one rank, over that network. Both must outlive it. Use it in the inner one's place: a call that goes past
/// it is not delayed. Not split.
template <Communicator Inner> class Delayed
    : public comm::Messages<Delayed<Inner>, Cpu>,
      public comm::ForwardsTo<Inner, comm::Capability::clocks, comm::Capability::computes> {
  using Forwards = comm::ForwardsTo<Inner, comm::Capability::clocks, comm::Capability::computes>;

 public:
  static constexpr std::string_view name = "Delayed";
  using engine_type = comm::DelayedEngine<typename Inner::engine_type>;
  template <class T, class Op> static constexpr bool reduces = Inner::template reduces<T, Op>;

  static constexpr comm::Capabilities capabilities = Forwards::capabilities | comm::Capabilities{comm::Capability::computes};

  Delayed(Inner& inner, SlowNetwork& network)
      : Forwards(inner), engine_(std::make_unique<engine_type>(inner.engine(), network, inner.rank(), inner.size())) {}

  int rank() const { return this->inner().rank(); }
  int size() const { return this->inner().size(); }
  /// A rank that computes is one that sleeps: dilated runs, of more ranks than cores.
  void compute(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
  engine_type& engine() { return *engine_; }

 private:
  std::unique_ptr<engine_type> engine_;
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "delayed.ipp"
#endif
