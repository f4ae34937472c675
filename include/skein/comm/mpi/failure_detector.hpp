// SPDX-License-Identifier: Apache-2.0
// Who is missing, where ranks share no memory: a rank whose deadline passes asks the others on a reserved tag what they wait
// for; who waits too answers from inside its wait, and who stays silent is named. The verdict goes to all. Ranks also tell the
// next one now and then what they have called, so that calls which differ are named although MPI does not compare them.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api.hpp"
#include "call_history.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Questions, answers and verdicts of one communicator, on a tag of their own. Never waits.
class FailureDetector {
 public:
  static constexpr int tag = 32200;

  /// `history` is this rank's. `id` is the communicator's, the same on its ranks and of no other that they have had: MPI uses the
  /// numbers of freed communicators again, and a late note must not reach the next one.
  FailureDetector(MPI_Comm comm, int id, int rank, int ranks, const CallHistory& history)
      : comm_(comm), id_(id), rank_(rank), ranks_(ranks), history_(history), notes_(static_cast<std::size_t>(ranks)) {}

  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;
  ~FailureDetector() {
    for (std::unique_ptr<Outgoing>& o : sent_) {
      int left = 0;
      if (mpi_runs()) MPI_Test(&o->request, &left, MPI_STATUS_IGNORE);
      if (!left) (void)o.release();
    }
  }

  /// Answers questions with what this rank waits for; throws the verdict of another rank.
  void serve(std::uint64_t call, const std::string& waits_for) {
    while (true) {
      int there = 0;
      MPI_Status status;
      check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &there, &status), "control");
      if (!there) return;
      Note note;
      check_mpi(MPI_Recv(&note, sizeof note, MPI_BYTE, status.MPI_SOURCE, tag, comm_, MPI_STATUS_IGNORE), "control");
      if (note.id != id_) continue;
      if (note.kind == Verdict) throw CommError(note.text);
      if (note.kind == Question) send(Answer, call, waits_for, status.MPI_SOURCE);
      if (note.kind == Answer) notes_[static_cast<std::size_t>(status.MPI_SOURCE)] = note;
      if (note.kind == Answer || note.kind == History) calls_of_[status.MPI_SOURCE] = note.recent;
    }
  }
  /// A sentence where a rank that has said what it calls differs from this one.
  std::optional<std::string> difference() const {
    for (const auto& [rank, recent] : calls_of_)
      if (auto text = history_.difference(recent, rank, rank_)) return text;
    return std::nullopt;
  }
  /// Tells the next rank what this one has called: its first calls, then a few times within `deadline` seconds. Costs a look at
  /// the clock, and no wait.
  void tell_history(double deadline) {
    const auto now = std::chrono::steady_clock::now();
    if (history_.calls() > 4 && std::chrono::duration<double>(now - told_).count() < std::min(0.5, deadline / 4)) return;
    told_ = now;
    send(History, 0, "", (rank_ + 1) % ranks_);
  }
  void ask() {
    for (Note& n : notes_) n.kind = None;
    others([&](int q) { send(Question, 0, "", q); });
  }
  bool all_answered() const {
    bool all = true;
    for (int q = 0; q < ranks_; ++q) all = all && (q == rank_ || answered(q));
    return all;
  }
  bool answered(int q) const { return notes_[static_cast<std::size_t>(q)].kind == Answer; }
  std::uint64_t call(int q) const { return notes_[static_cast<std::size_t>(q)].call; }
  std::string text(int q) const { return notes_[static_cast<std::size_t>(q)].text; }
  void tell_all(const std::string& verdict) {
    others([&](int q) { send(Verdict, 0, verdict, q); });
  }

 private:
  enum Kind : std::uint32_t { None, Question, Answer, Verdict, History };
  struct Note {
    Kind kind = None;
    int id = 0;
    std::uint64_t call = 0;
    RecentCalls recent;
    char text[1000] = "";
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
  std::unique_ptr<Outgoing>& place() {
    for (std::unique_ptr<Outgoing>& o : sent_) {
      int left = 0;
      MPI_Test(&o->request, &left, MPI_STATUS_IGNORE);
      if (left) return o;
    }
    return sent_.emplace_back(std::make_unique<Outgoing>());
  }
  void send(Kind kind, std::uint64_t call, const std::string& text, int to) {
    std::unique_ptr<Outgoing>& o = place();
    o->note.kind = kind;
    o->note.id = id_;
    o->note.call = call;
    o->note.recent = history_.recent();
    std::snprintf(o->note.text, sizeof o->note.text, "%s", text.c_str());
    MPI_Isend(&o->note, sizeof o->note, MPI_BYTE, to, tag, comm_, &o->request);
  }

  MPI_Comm comm_;
  int id_, rank_, ranks_;
  const CallHistory& history_;
  std::vector<Note> notes_;
  std::map<int, RecentCalls> calls_of_;
  std::chrono::steady_clock::time_point told_{};
  std::vector<std::unique_ptr<Outgoing>> sent_;
};

}  // namespace skein::inline SKEIN_ABI::comm
