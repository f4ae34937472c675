// SPDX-License-Identifier: Apache-2.0
// Who is missing, where ranks share no memory: a rank whose deadline passes asks the others on a reserved tag what they wait
// for; who waits too answers from inside its wait, and who stays silent is named. The verdict goes to all.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "api.hpp"

namespace skein::inline SKEIN_ABI::comm {

class Control {
 public:
  static constexpr int tag = 32200;

  Control(MPI_Comm comm, int rank, int ranks) : comm_(comm), rank_(rank), ranks_(ranks), notes_(static_cast<std::size_t>(ranks)) {}

  /// Answers questions with what this rank waits for; throws the verdict of another rank.
  void serve(std::uint64_t call, const std::string& waits_for) {
    while (true) {
      int there = 0;
      MPI_Status status;
      check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &there, &status), "control");
      if (!there) return;
      Note note;
      check_mpi(MPI_Recv(&note, sizeof note, MPI_BYTE, status.MPI_SOURCE, tag, comm_, MPI_STATUS_IGNORE), "control");
      if (note.kind == Verdict) throw CommError(note.text);
      if (note.kind == Question) send(Answer, call, waits_for, status.MPI_SOURCE);
      if (note.kind == Answer) notes_[static_cast<std::size_t>(status.MPI_SOURCE)] = note;
    }
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
  enum Kind : std::uint32_t { None, Question, Answer, Verdict };
  struct Note {
    Kind kind = None;
    std::uint64_t call = 0;
    char text[1000] = "";
  };
  template <class F> void others(F&& f) {
    for (int q = 0; q < ranks_; ++q)
      if (q != rank_) f(q);
  }
  // Short enough for every MPI to buffer it: the receiver need not be there.
  void send(Kind kind, std::uint64_t call, const std::string& text, int to) {
    Note note;
    note.kind = kind;
    note.call = call;
    std::snprintf(note.text, sizeof note.text, "%s", text.c_str());
    MPI_Send(&note, sizeof note, MPI_BYTE, to, tag, comm_);
  }

  MPI_Comm comm_;
  int rank_, ranks_;
  std::vector<Note> notes_;
};

}  // namespace skein::inline SKEIN_ABI::comm
