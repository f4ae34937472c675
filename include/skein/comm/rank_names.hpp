// SPDX-License-Identifier: Apache-2.0
// What messages call the ranks of a communicator. A part, made by split(), numbers its ranks from 0, and those numbers mean
// nothing to who reads of a failure: messages name a rank by its number in the communicator that was split first.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/text.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What a callable says of a rank, so that who asks for it is compiled once, not for each callable; which outlives this.
template <class Result> class OfRank {
 public:
  template <class F> OfRank(const F& f) : function_(&f), call_(&call<F>) {}
  Result operator()(int r) const { return call_(function_, r); }

 private:
  template <class F> static Result call(const void* f, int r) { return (*static_cast<const F*>(f))(r); }
  const void* function_;
  Result (*call_)(const void*, int);
};

/// The ranks of a communicator as messages name them.
class RankNames {
 public:
  /// Each by its own number, however many they are.
  RankNames() = default;
  /// Those of a communicator that is no part of another: each by its own number.
  RankNames(int size) : size_(size) {}
  /// Those of a part, by what each is called.
  explicit RankNames(std::vector<int> numbers) : size_(static_cast<int>(numbers.size())), numbers_(std::move(numbers)) {}

  int size() const { return size_; }
  /// What rank r is called; r itself where there is none.
  int number(int r) const {
    return r < 0 || static_cast<std::size_t>(r) >= numbers_.size() ? r : numbers_[static_cast<std::size_t>(r)];
  }
  /// "rank 3"; "any rank" of one below 0.
  std::string name(int r) const { return r < 0 ? "any rank" : text("rank {}", number(r)); }
  /// Those of a part, whose ranks are these of this communicator.
  RankNames part(std::vector<int> members) const {
    for (int& m : members) m = number(m);
    return RankNames(std::move(members));
  }

 private:
  int size_ = 0;
  std::vector<int> numbers_;
};

/// The names of a communicator's ranks, where its engine says them; else each has its own number.
template <class Engine> RankNames rank_names(const Engine&) { return {}; }
template <class Engine>
requires requires(const Engine& e) { e.rank_names(); }
RankNames rank_names(const Engine& e) { return e.rank_names(); }

/// The names of a communicator's ranks; of one without an engine their numbers.
template <class Comm> RankNames names_of(Comm& comm) { return RankNames(comm.size()); }
template <class Comm>
requires requires(Comm& c) { c.engine(); }
RankNames names_of(Comm& comm) {
  RankNames names = rank_names(comm.engine());
  return names.size() > 0 ? names : RankNames(comm.size());
}

/// "rank 2", "ranks 0, 3, 4": of these numbers.
std::string ranks_text(std::span<const int> numbers);
/// Names those that are wanted, of which there is at least one.
std::string ranks_text(const RankNames& names, OfRank<bool> wanted);
/// Names those that are wanted, as ranks_text() does; empty where none is.
std::string some_ranks_text(const RankNames& names, OfRank<bool> wanted);
/// What the others hear of a rank whose call an exception of its own has ended.
std::string abandoned_text(const RankNames& names, int rank);
/// What is said of ranks whose processes have ended without a goodbye.
std::string gone_text(std::span<const int> numbers);

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "rank_names.ipp"
#endif
