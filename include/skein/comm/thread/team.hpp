// SPDX-License-Identifier: Apache-2.0
// What the ranks of a ThreadComm share: a line and a ring of posted calls for each, the mailboxes, and the failure that ends all.
#pragma once
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../collective_call.hpp"
#include "../options.hpp"
#include "../wait.hpp"
#include "mailbox.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// The first failure of any rank, seen by all teams that stem from one spawn. Set once; but an exception that abandons a call is
/// known only when it has left its rank, whose thread then says what it was.
class Failure {
 public:
  /// True for the caller that was first.
  bool set(int rank, const std::string& message, std::exception_ptr cause = nullptr);
  /// An exception passes a call of this thread's rank: the others end, and set() of this thread has the reason later.
  void abandon(int rank);
  bool happened() const { return state_.load(std::memory_order_seq_cst) != 0; }
  int rank() const { return rank_; }
  std::string message() const {
    const std::lock_guard lock(mutex_);
    return message_;
  }
  std::exception_ptr cause() const { return cause_; }

 private:
  Counter state_{0};
  mutable std::mutex mutex_;
  int rank_ = -1;
  std::thread::id abandoned_by_{};  // whose reason is not known yet
  std::string message_;
  std::exception_ptr cause_;
};

/// One group of ranks that are threads of this process.
struct Team {
  static constexpr std::uint64_t ring = 64;  // calls in flight
  enum { Posted = 0, Done = 1 };             // the counters of a line

  Team(RankNames ranks, const CommOptions& o, int ranks_of_process, std::shared_ptr<Failure> f);

  Line& line(int r) { return lines[static_cast<std::size_t>(r)]; }
  CollectiveCall& post(int r, std::uint64_t call) { return posts[static_cast<std::size_t>(r) * ring + call % ring]; }
  void wake_everyone();
  /// The team of a part of this one, of these ranks: of the `split`-th split of all of them, and of a colour. Made by the first
  /// that asks; it stays here until the last has.
  std::shared_ptr<Team> part(std::uint64_t split, int color, const std::vector<int>& members);

  RankNames names;
  int size, node_size, spins;
  CommOptions options;
  std::shared_ptr<Failure> failure;
  std::vector<Line> lines;
  std::vector<CollectiveCall> posts;
  std::vector<Mailbox> boxes;
  std::vector<MessagePool> pools;

 private:
  struct Part {
    std::shared_ptr<Team> team;
    int asked = 0;
  };
  std::mutex parts_mutex_;
  std::map<std::pair<std::uint64_t, int>, Part> parts_;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "team.ipp"
#endif
