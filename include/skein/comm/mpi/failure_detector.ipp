// SPDX-License-Identifier: Apache-2.0
// The bodies of failure_detector.hpp.
#pragma once
#include <cstddef>
#include <cstring>
#include <utility>

#include "../../core/clock.hpp"
#include "failure_detector.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE FailureDetector::FailureDetector(MPI_Comm comm, int id, int rank, RankNames ranks, const CallHistory& history)
    : comm_(comm), names_(std::move(ranks)), id_(id), rank_(rank), ranks_(names_.size()), history_(history),
      notes_(static_cast<std::size_t>(ranks_)), left_(notes_.size()) {}

SKEIN_MPI_INLINE FailureDetector::~FailureDetector() {
  for (std::unique_ptr<Outgoing>& o : sent_) {
    int left = 0;
    if (mpi_runs()) MPI_Test(&o->request, &left, MPI_STATUS_IGNORE);
    if (!left) (void)o.release();
  }
}

SKEIN_MPI_INLINE void FailureDetector::serve() {
  while (true) {
    int there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &there, &status), "control");
    if (!there) return;
    Note note;
    check_mpi(MPI_Recv(&note, sizeof note, MPI_BYTE, status.MPI_SOURCE, tag, comm_, MPI_STATUS_IGNORE), "control");
    if (note.id != id_) continue;
    if (note.kind == Verdict) throw CommError(note.text);
    if (note.kind == Question) askers_.push_back(status.MPI_SOURCE);
    if (note.kind == Leave) left_[static_cast<std::size_t>(status.MPI_SOURCE)] = {seconds_now(), note.call};
    if (note.kind == Answer) notes_[static_cast<std::size_t>(status.MPI_SOURCE)] = note;
    if (note.kind != Answer && note.kind != History) continue;
    std::vector<Told>& told = calls_of_[status.MPI_SOURCE];
    if (told.size() == most_told) told.pop_back();  // the hash of the next covers it
    told.push_back({note.recent, 0});
  }
}

SKEIN_MPI_INLINE void FailureDetector::answer(std::uint64_t call, const std::string& waits_for) {
  for (const int q : askers_) send(Answer, call, waits_for, q);
  askers_.clear();
}

SKEIN_MPI_INLINE std::optional<std::string> FailureDetector::difference() {
  for (auto& [rank, notes] : calls_of_) {
    for (Told& told : notes) {
      const std::uint64_t both = std::min(told.recent.calls, history_.calls());
      if (std::exchange(told.compared, both) == both) continue;
      if (auto text = history_.difference(told.recent, rank, rank_, names_)) return text;
    }
    const auto ahead = [&](const Told& told) { return told.recent.calls > history_.calls(); };
    notes.erase(notes.begin(), std::find_if(notes.begin(), notes.end(), ahead));
  }
  return std::nullopt;
}

SKEIN_MPI_INLINE void FailureDetector::tell_history(double deadline) {
  const double now = seconds_now();
  if (history_.calls() > 4 && history_.calls() - told_at_ < told_calls && now - told_ < std::min(0.5, deadline / 4)) return;
  told_ = now;
  told_at_ = history_.calls();
  send(History, 0, "", (rank_ + 1) % ranks_);
}

SKEIN_MPI_INLINE void FailureDetector::ask() {
  for (Note& n : notes_) n.kind = None;
  others([&](int q) { send(Question, 0, "", q); });
}

SKEIN_MPI_INLINE bool FailureDetector::all_answered() const {
  bool all = true;
  for (int q = 0; q < ranks_; ++q) all = all && (q == rank_ || answered(q));
  return all;
}

SKEIN_MPI_INLINE void FailureDetector::tell_all(const std::string& verdict) {
  others([&](int q) { send(Verdict, 0, verdict, q); });
}

SKEIN_MPI_INLINE void FailureDetector::tell_leave(std::uint64_t calls) {
  others([&](int q) { send(Leave, calls, "", q); });
}

SKEIN_MPI_INLINE bool FailureDetector::has_left(int q) const {
  const double since = left_[static_cast<std::size_t>(q)].since;
  return since > 0 && seconds_now() - since >= 0.3;
}

SKEIN_MPI_INLINE std::unique_ptr<FailureDetector::Outgoing>& FailureDetector::place() {
  for (std::unique_ptr<Outgoing>& o : sent_) {
    int left = 0;
    MPI_Test(&o->request, &left, MPI_STATUS_IGNORE);
    if (left) return o;
  }
  return sent_.emplace_back(std::make_unique<Outgoing>());
}

SKEIN_MPI_INLINE void FailureDetector::send(Kind kind, std::uint64_t call, const std::string& text, int to) {
  std::unique_ptr<Outgoing>& o = place();
  o->note.kind = kind;
  o->note.id = id_;
  o->note.call = call;
  if (kind != Leave) o->note.recent = history_.recent();
  std::snprintf(o->note.text, sizeof o->note.text, "%s", text.c_str());
  const std::size_t bytes = kind == Leave ? offsetof(Note, recent) : offsetof(Note, text) + std::strlen(o->note.text) + 1;
  MPI_Isend(&o->note, static_cast<int>(bytes), MPI_BYTE, to, tag, comm_, &o->request);
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
