// SPDX-License-Identifier: Apache-2.0
// Who is missing, where ranks share no memory: a rank whose deadline passes asks the others on a reserved tag what they wait
// for; who waits too answers from inside its wait, and who stays silent is named. The verdict goes to all. Ranks also tell the
// next one now and then what they have called, so that calls which differ are named although MPI does not compare them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../tags.hpp"
#include "api.hpp"
#include "call_history.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// Questions, answers and verdicts of one communicator, on a tag of their own. Never waits.
class FailureDetector {
 public:
  static constexpr int tag = tags::failures;
  /// A rank tells its calls when it has made so many more, and looks as often at what others tell: all that a note shows is
  /// then still in the other's history.
  static constexpr std::uint64_t told_calls = 48;
  static_assert(told_calls < RecentCalls::most);

  /// `history` is this rank's. `id` is the communicator's, the same on its ranks and of no other that they have had: MPI uses the
  /// numbers of freed communicators again, and a late note must not reach the next one.
  FailureDetector(MPI_Comm comm, int id, int rank, RankNames ranks, const CallHistory& history);

  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;
  ~FailureDetector();

  /// Takes what others have sent; throws the verdict of another rank.
  void serve();
  /// Somebody wants to know what this rank waits for.
  bool asked() const { return !askers_.empty(); }
  void answer(std::uint64_t call, const std::string& waits_for);
  /// A sentence where a rank that has said what it calls differs from this one. Costs nothing where neither has called more
  /// since it was asked last.
  std::optional<std::string> difference();
  /// Tells the next rank what this one has called: its first calls, then a few times within `deadline` seconds and at least each
  /// `told_calls`, so that every call is shown. Costs a look at the clock, and no wait.
  void tell_history(double deadline);
  void ask();
  bool all_answered() const;
  bool answered(int q) const { return notes_[static_cast<std::size_t>(q)].kind == Answer; }
  std::uint64_t call(int q) const { return notes_[static_cast<std::size_t>(q)].call; }
  std::string text(int q) const { return notes_[static_cast<std::size_t>(q)].text; }
  void tell_all(const std::string& verdict);
  /// This rank makes no further call than the first `calls`.
  void tell_leave(std::uint64_t calls);
  /// Rank q has said so, long enough ago that what it had sent before has come.
  bool has_left(int q) const;
  /// And it has not made this call, counted from 0.
  bool has_left_before(int q, std::uint64_t call) const {
    return has_left(q) && left_[static_cast<std::size_t>(q)].calls <= call;
  }

 private:
  enum Kind : std::uint32_t { None, Question, Answer, Verdict, History, Leave };
  struct Note {
    Kind kind = None;
    int id = 0;
    std::uint64_t call = 0;
    RecentCalls recent;
    char text[1000] = "";  // the last: no more of it travels than there is
  };
  template <class F> void others(F&& f) {
    for (int q = 0; q < ranks_; ++q)
      if (q != rank_) f(q);
  }
  // Never waited for: who is asked may be gone. What has not left when this ends stays allocated, since MPI may still read it.
  struct Outgoing {
    Note note;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  // One that has left, or a new one.
  std::unique_ptr<Outgoing>& place();
  void send(Kind kind, std::uint64_t call, const std::string& text, int to);

  MPI_Comm comm_;
  RankNames names_;
  int id_, rank_, ranks_;
  const CallHistory& history_;
  std::vector<Note> notes_;
  struct Left {
    double since = 0;  // when its leave was heard of; 0: it is there
    std::uint64_t calls = 0;
  };
  std::vector<Left> left_;
  struct Told {
    RecentCalls recent;
    std::uint64_t compared = 0;  // so many calls of both
  };
  static constexpr std::size_t most_told = 64;
  std::map<int, std::vector<Told>> calls_of_;  // notes of calls that this rank has not all made
  double told_ = -1;                           // when
  std::uint64_t told_at_ = 0;                  // calls, when they were told last
  std::vector<std::unique_ptr<Outgoing>> sent_;
  std::vector<int> askers_;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "failure_detector.ipp"
#endif
