// SPDX-License-Identifier: Apache-2.0
// The steps of ranks that pass chunks through slots, in all orders: every state that some order leads to is visited. A rank reads
// the others' counters one at a time, and may decide by values that are long outdated; a step begins and ends, so that others
// move while a slot is copied. Slots are modelled by what is in each of their parts: part p of rank q's slot is what rank p reads
// of it.
#include "skein/comm/node/chunk_steps.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace sk = skein;
using sk::comm::ChunkCall, sk::comm::ChunkCounts, sk::comm::ChunkStep;

namespace {
constexpr int most_ranks = 3, most_depth = 2;
constexpr std::uint8_t nothing = 0, being_filled = 255;
constexpr std::uint8_t values_of(int chunk) { return static_cast<std::uint8_t>(2 * chunk + 1); }
constexpr std::uint8_t sums_of(int chunk) { return static_cast<std::uint8_t>(2 * chunk + 2); }

struct Rank {
  std::array<std::uint8_t, 3> own{}, seen{};  // in, folded, taken: its own, and the least that it has read of the others
  ChunkStep doing = ChunkStep::wait;
  std::array<std::array<std::uint8_t, most_ranks>, most_depth> slots{};
};
using State = std::array<Rank, most_ranks>;

ChunkCounts counts(const std::array<std::uint8_t, 3>& c) { return {c[0], c[1], c[2]}; }

/// All states of a call of some ranks that decide by `decide`, and the first fault that one of them has.
template <class Decide> class Exploration {
 public:
  Exploration(int ranks, ChunkCall call, Decide decide) : ranks_(ranks), call_(call), decide_(decide) {
    reach(State{});
    while (fault_.empty() && !open_.empty()) {
      const State s = open_.back();
      open_.pop_back();
      const std::size_t before = moves_;
      for (int r = 0; r < ranks_ && fault_.empty(); ++r) look(s, r), act(s, r);
      if (moves_ == before && !complete(s)) fault_ = "all wait";
    }
  }
  /// Empty: none.
  const std::string& fault() const { return fault_; }
  std::size_t states() const { return known_.size(); }

 private:
  static Rank& of(State& s, int r) { return s[static_cast<std::size_t>(r)]; }
  static const Rank& of(const State& s, int r) { return s[static_cast<std::size_t>(r)]; }
  std::uint8_t& part(State& s, int owner, int reader, int chunk) const {
    return of(s, owner).slots[static_cast<std::size_t>(chunk % call_.depth)][static_cast<std::size_t>(reader)];
  }

  void reach(const State& s) {
    std::string key;
    for (int r = 0; r < ranks_; ++r) {
      const Rank& k = of(s, r);
      key.append(k.own.begin(), k.own.end()).append(k.seen.begin(), k.seen.end()) += static_cast<char>(k.doing);
      for (int d = 0; d < call_.depth; ++d)
        key.append(k.slots[static_cast<std::size_t>(d)].begin(), k.slots[static_cast<std::size_t>(d)].begin() + ranks_);
    }
    if (known_.insert(key).second) open_.push_back(s);
  }
  bool complete(const State& s) const {
    return std::all_of(s.begin(), s.begin() + ranks_, [&](const Rank& r) { return r.own[2] == call_.count; });
  }

  /// Rank r reads one of the others' counters.
  void look(const State& s, int r) {
    for (std::size_t which = 0; which < 3; ++which) {
      State next = s;
      std::uint8_t least = 255;
      for (int q = 0; q < ranks_; ++q)
        if (q != r) least = std::min(least, of(s, q).own[which]);
      of(next, r).seen[which] = least;
      if (least != of(s, r).seen[which]) ++moves_, reach(next);
    }
  }
  /// Rank r begins a step, or ends the one that it is in and counts it.
  void act(const State& s, int r) {
    State next = s;
    Rank& k = of(next, r);
    if (k.doing == ChunkStep::wait) {
      k.doing = decide_(call_, counts(k.own), counts(k.seen));
      if (k.doing == ChunkStep::wait) return;
      touch(next, r, true);
    } else {
      touch(next, r, false);
      ++k.own[static_cast<std::size_t>(k.doing) - 1];
      k.doing = ChunkStep::wait;
    }
    ++moves_;
    reach(next);
  }

  /// What the step of rank r finds in the slots as it begins and as it ends, and what it leaves there.
  void touch(State& s, int r, bool begins) {
    const Rank& k = of(s, r);
    const int chunk = k.own[static_cast<std::size_t>(k.doing) - 1];
    for (int q = 0; q < ranks_; ++q) {
      if (q == r) continue;
      if (k.doing == ChunkStep::fill)
        expect(part(s, r, q, chunk), begins ? nothing : being_filled, begins ? being_filled : values_of(chunk), "fills");
      else if (k.doing == ChunkStep::fold)
        expect(part(s, q, r, chunk), values_of(chunk), begins ? values_of(chunk) : sums_of(chunk), "folds");
      else if (call_.folds) expect(part(s, r, q, chunk), sums_of(chunk), begins ? sums_of(chunk) : nothing, "takes sums");
      else expect(part(s, q, r, chunk), values_of(chunk), begins ? values_of(chunk) : nothing, "takes values");
    }
  }
  void expect(std::uint8_t& part, std::uint8_t wanted, std::uint8_t left, const char* step) {
    if (part != wanted) fault_ = std::string("a rank ") + step + " where there is something else";
    part = left;
  }

  int ranks_;
  ChunkCall call_;
  Decide decide_;
  std::unordered_set<std::string> known_;
  std::vector<State> open_;
  std::size_t moves_ = 0;
  std::string fault_;
};

constexpr auto next = [](const ChunkCall& call, const ChunkCounts& own, const ChunkCounts& others) {
  return sk::comm::next_step(call, own, others);
};
}  // namespace

TEST_CASE("no order of looks and steps of ranks loses a chunk in a slot, or holds all of them up") {
  const bool folds = GENERATE(false, true);
  for (const ChunkCall call : {ChunkCall{5, 2, folds}, ChunkCall{4, 1, folds}, ChunkCall{1, 2, folds}}) {
    const Exploration two(2, call, next);
    CHECK(two.fault() == "");
  }
  for (const ChunkCall call : {ChunkCall{4, 2, folds}, ChunkCall{3, 1, folds}}) {
    const Exploration three(3, call, next);
    CHECK(three.fault() == "");
    CHECK(three.states() > 200);
  }
}

TEST_CASE("a rank that asks only the others whether its slot is free is found") {
  const auto asks_others = [](const ChunkCall& call, const ChunkCounts& own, const ChunkCounts& others) {
    const ChunkStep step = next(call, own, others);
    const bool free = own.in < call.count && others.taken > own.in - call.depth;
    return step == ChunkStep::wait && free ? ChunkStep::fill : step;
  };
  const Exploration two(2, {5, 2, true}, asks_others);
  CHECK(two.fault() == "a rank fills where there is something else");
}

TEST_CASE("a rank that folds what it has not seen in slots is found, and one that never fills") {
  const auto folds_early = [](const ChunkCall& call, const ChunkCounts& own, const ChunkCounts& others) {
    const ChunkStep step = next(call, own, others);
    return step == ChunkStep::wait && own.folded < own.in ? ChunkStep::fold : step;
  };
  CHECK(Exploration(2, {2, 1, true}, folds_early).fault() == "a rank folds where there is something else");
  const auto never = [](const ChunkCall&, const ChunkCounts&, const ChunkCounts&) { return ChunkStep::wait; };
  CHECK(Exploration(2, {1, 1, true}, never).fault() == "all wait");
}

TEST_CASE("what waits names the step of its oldest chunk") {
  using sk::comm::awaited_step;
  STATIC_REQUIRE(awaited_step({4, 2, true}, {}) == ChunkStep::fill);
  STATIC_REQUIRE(awaited_step({4, 2, true}, {2, 0, 0}) == ChunkStep::fold);
  STATIC_REQUIRE(awaited_step({4, 2, true}, {2, 2, 1}) == ChunkStep::take);
  STATIC_REQUIRE(awaited_step({4, 2, false}, {2, 0, 0}) == ChunkStep::take);
  STATIC_REQUIRE(awaited_step({4, 2, false}, {2, 0, 2}) == ChunkStep::fill);
}

TEST_CASE("spans that are shared themselves need no slots") {
  constexpr ChunkCall call{.count = 1, .depth = 4, .folds = true, .in_place = true};
  STATIC_REQUIRE(sk::comm::next_step(call, {}, {-9, -9, -9}) == ChunkStep::fill);
  STATIC_REQUIRE(sk::comm::next_step(call, {1, 0, 0}, {0, 0, 0}) == ChunkStep::wait);
  STATIC_REQUIRE(sk::comm::next_step(call, {1, 0, 0}, {1, 0, 0}) == ChunkStep::fold);
  STATIC_REQUIRE(sk::comm::next_step(call, {1, 1, 0}, {1, 0, 0}) == ChunkStep::wait);
  STATIC_REQUIRE(sk::comm::next_step(call, {1, 1, 0}, {1, 1, 0}) == ChunkStep::take);
}
