// SPDX-License-Identifier: Apache-2.0
// Counted<Comm>: a communicator that counts what goes through another, at the one place that every call passes. So a plan's bytes
// are compared with those of a real training, whatever the policy believes about itself.
#pragma once
#include <string>
#include <utility>

#include "concepts.hpp"
#include "counts.hpp"
#include "messages.hpp"
#include "progress.hpp"

namespace skein::inline SKEIN_ABI {

namespace comm {
/// An engine in front of an engine, of this rank.
template <class Engine> class CountingEngine {
 public:
  static constexpr bool starts_by_waiting = comm::starts_by_waiting<Engine>;
  CountingEngine(Engine& engine, int rank, int ranks) : engine_(&engine), rank_(rank), ranks_(ranks) {}
  void run(const CollectiveCall& o) {
    count(o);
    engine_->run(o);
  }
  Ticket start(const CollectiveCall& o) {
    count(o);
    return engine_->start(o);
  }
  Ticket start_send(const void* data, std::size_t bytes, int to, int tag) {
    ++counts_.messages;
    counts_.bytes += static_cast<long>(bytes);
    return engine_->start_send(data, bytes, to, tag);
  }
  Ticket start_recv(void* data, std::size_t bytes, int from, int tag) { return engine_->start_recv(data, bytes, from, tag); }
  bool test(Ticket& t) { return engine_->test(t); }
  void wait(Ticket& t) { engine_->wait(t); }
  bool wait_some(Ticket& t, std::chrono::nanoseconds limit) requires requires(Engine& e) { e.wait_some(t, limit); }
  { return engine_->wait_some(t, limit); }
  void progress() { engine_->progress(); }
  void abandon() { engine_->abandon(); }
  RankNames rank_names() const { return comm::rank_names(*engine_); }
  const Counts& counts() const { return counts_; }

 private:
  void count(const CollectiveCall& o) {
    ++counts_.collectives;
    counts_.payload += static_cast<long>(o.sent_bytes(rank_, ranks_));
  }
  Engine* engine_;
  int rank_, ranks_;
  Counts counts_;
};
}  // namespace comm

/// Counts what this rank gives to `inner`, which must outlive it. Costs an addition a call.
template <class Inner> class Counted : public comm::Messages<Counted<Inner>, typename Inner::device>,
                                       public comm::ForwardsTo<Inner> {
 public:
  static constexpr std::string_view name = Inner::name;
  using engine_type = comm::CountingEngine<typename Inner::engine_type>;
  template <class T, class Op> static constexpr bool reduces = Inner::template reduces<T, Op>;

  explicit Counted(Inner& inner) : comm::ForwardsTo<Inner>(inner), engine_(inner.engine(), inner.rank(), inner.size()) {}
  int rank() const { return this->inner().rank(); }
  int size() const { return this->inner().size(); }
  /// Since it was made.
  const comm::Counts& counts() const { return engine_.counts(); }
  engine_type& engine() { return engine_; }

 private:
  engine_type engine_;
};

}  // namespace skein::inline SKEIN_ABI
