// SPDX-License-Identifier: Apache-2.0
// The coordinator's mind, without sockets, threads or a clock: who has come to which exchange, who is missing when a deadline
// passes, and the one verdict that ends all ranks. Frames and times go in, frames come out; the tests feed it by hand. A call of
// a GPU that is overdue is an inquiry: every rank is asked how many calls it has started, and who started fewer, or is silent, is
// named.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../collective_call.hpp"
#include "../wait.hpp"
#include "wire.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// What an exchange's payload begins with says what it is for.
std::string describe_exchange(std::string_view payload, const RankNames& names);

/// What the coordinator knows and decides. Frames and times go in, frames come out; it has no socket, thread or clock.
class CoordinatorState {
 public:
  explicit CoordinatorState(int size);

  /// A frame of a rank. Throws CommError for what no rank of this library sends.
  void take(int rank, Frame f, double now);
  /// The connection of a rank has ended.
  void lost(int rank);
  /// Whose deadline has passed?
  void tick(double now);
  /// When tick has something to do next; infinity is 1e18.
  double next_due() const;

  bool failed() const { return !verdict_.empty(); }
  const std::string& verdict() const { return verdict_; }
  bool left(int rank) const { return left_[index(rank)]; }
  bool all_left() const { return std::find(left_.begin(), left_.end(), false) == left_.end(); }
  /// Groups that some member has not left.
  std::size_t groups() const { return groups_.size(); }
  /// What is to be sent since the last call: (rank, frame).
  std::vector<std::pair<int, Frame>> output() { return std::exchange(out_, {}); }

 private:
  struct Exchange {
    std::vector<std::string> payloads;  // by place in the group
    std::vector<bool> came;
    double due = 0, limit = 0;
    std::string what;
  };
  struct Inquiry {
    bool running = false;
    std::uint64_t call = 0;
    double due = 0, limit = 0;
    std::string what;
    std::vector<bool> answered;
    std::vector<std::uint64_t> started;
    std::vector<std::string> waits;
  };
  struct Group {
    std::vector<int> members;
    std::vector<bool> left;    // by place: will not come to an exchange of this group any more
    std::string why, verdict;  // why one left that an exception made leave; what has ended this group
    std::map<std::uint64_t, Exchange> exchanges;
    Inquiry inquiry;
  };

  std::size_t index(int rank) const { return static_cast<std::size_t>(rank); }
  static std::size_t place(const Group& g, int rank);
  Group& group(std::uint32_t id);
  void send(int rank, Frame f);
  void fail(std::string text);
  /// Ends a group alone.
  void fail(std::uint32_t id, Group& g, const std::string& text);

  template <class Wanted> std::string named(const Group& g, Wanted&& wanted) {
    return ranks_text(RankNames(g.members), [&](int i) { return wanted(static_cast<std::size_t>(i)); });
  }

  void exchange(int rank, Frame f, double now);
  // "save is a call of all ranks: rank 1 has not called it. barrier in save (call 3): rank 1".
  static std::string missing_text(std::uint64_t number, const Exchange& e, const std::string& who);
  /// Those have left, and will not come to the exchange.
  void fail_without(std::uint32_t id, Group& g, std::uint64_t number, const Exchange& e, const std::string& who);
  void overdue(Group& g, std::uint64_t number, const Exchange& e);
  /// All have come to it: each gets the values of all.
  void answer(Group& g, std::uint32_t id, std::uint64_t number, const Exchange& e);

  void open(int rank, const Frame& f);
  void leave(int rank);
  void leave(int rank, std::uint32_t id, const std::string& why);
  void leave(std::uint32_t id, Group& g, std::size_t place, const std::string& why = {});
  /// All of its members have left: it is forgotten. The group of all ranks stays.
  static bool is_over(std::uint32_t id, const Group& g);

  void inquire(int rank, const Frame& f, double now);
  void answer(int rank, const Frame& f);
  void judge(Group& g);

  int size_;
  std::vector<bool> left_;
  std::map<std::uint32_t, Group> groups_;
  std::uint64_t tickets_ = 0;
  std::string verdict_;
  std::vector<std::pair<int, Frame>> out_;
};

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "coordinator_state.ipp"
#endif
