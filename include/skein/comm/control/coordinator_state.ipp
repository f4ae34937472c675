// SPDX-License-Identifier: Apache-2.0
// The bodies of coordinator_state.hpp.
#pragma once
#include "coordinator_state.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// The call that a payload is of, where it is one.
SKEIN_INLINE std::optional<Signature> signature_of(std::string_view payload) {
  Signature s;
  if (payload.size() < sizeof s) return std::nullopt;
  std::memcpy(&s, payload.data(), sizeof s);
  return is_known(s) ? std::optional(s) : std::nullopt;
}

SKEIN_INLINE std::string describe_exchange(std::string_view payload, const RankNames& names) {
  const std::optional<Signature> s = signature_of(payload);
  return s ? describe(*s, names) : "an exchange";
}

SKEIN_INLINE CoordinatorState::CoordinatorState(int size) : size_(size), left_(static_cast<std::size_t>(size)) {
  Group all;
  for (int r = 0; r < size; ++r) all.members.push_back(r);
  all.left.resize(all.members.size());
  groups_.emplace(0u, std::move(all));
}

SKEIN_INLINE void CoordinatorState::take(int rank, Frame f, double now) {
  if (failed()) return;
  switch (f.kind) {
    case Kind::Exchange:
      return exchange(rank, std::move(f), now);
    case Kind::Open:
      return open(rank, f);
    case Kind::Overdue:
      return inquire(rank, f, now);
    case Kind::State:
      return answer(rank, f);
    case Kind::Fail:
      if (f.group == 0) return fail(f.payload);
      return fail(f.group, group(f.group), f.payload);
    case Kind::Left:
      return leave(rank, f.group, f.payload);
    case Kind::Goodbye:
      return leave(rank);
    default:
      throw CommError(skein::text("rank {} sent the coordinator a frame that only the coordinator sends", rank));
  }
}

SKEIN_INLINE void CoordinatorState::lost(int rank) {
  if (left_[index(rank)] || failed()) return;
  left_[index(rank)] = true;
  fail(gone_text({&rank, 1}));
}

SKEIN_INLINE void CoordinatorState::tick(double now) {
  for (auto& [id, g] : groups_) {
    for (auto& [number, e] : g.exchanges)
      if (!failed() && g.verdict.empty() && now >= e.due) overdue(g, number, e);
    if (!failed() && g.inquiry.running && now >= g.inquiry.due) judge(g);
  }
}

SKEIN_INLINE double CoordinatorState::next_due() const {
  double t = 1e18;
  if (failed()) return t;
  for (const auto& [id, g] : groups_) {
    for (const auto& [number, e] : g.exchanges)
      if (g.verdict.empty()) t = std::min(t, e.due);
    if (g.inquiry.running) t = std::min(t, g.inquiry.due);
  }
  return t;
}

SKEIN_INLINE std::size_t CoordinatorState::place(const Group& g, int rank) {
  const auto at = std::find(g.members.begin(), g.members.end(), rank);
  if (at == g.members.end()) throw CommError(skein::text("rank {} speaks for a group that it is not in", rank));
  return static_cast<std::size_t>(at - g.members.begin());
}

SKEIN_INLINE CoordinatorState::Group& CoordinatorState::group(std::uint32_t id) {
  const auto at = groups_.find(id);
  if (at == groups_.end()) throw CommError(skein::text("the coordinator knows no group {}", id));
  return at->second;
}

SKEIN_INLINE void CoordinatorState::send(int rank, Frame f) {
  if (!left_[index(rank)]) out_.emplace_back(rank, std::move(f));
}

SKEIN_INLINE void CoordinatorState::fail(std::string text) {
  if (failed()) return;
  verdict_ = text.empty() ? "a rank failed" : std::move(text);
  for (int r = 0; r < size_; ++r) send(r, {Kind::Fail, 0, 0, 0, verdict_});
}

SKEIN_INLINE void CoordinatorState::fail(std::uint32_t id, Group& g, const std::string& text) {
  if (failed() || !g.verdict.empty()) return;
  g.verdict = text.empty() ? "a rank failed" : text;
  for (const int r : g.members) send(r, {Kind::Fail, id, 0, 0, g.verdict});
}

SKEIN_INLINE void CoordinatorState::exchange(int rank, Frame f, double now) {
  Group& g = group(f.group);
  if (!g.verdict.empty()) return;  // which this rank is about to hear
  const std::size_t n = g.members.size(), i = place(g, rank);
  Exchange& e = g.exchanges[f.number];
  if (e.came.empty()) {
    e.came.assign(n, false);
    e.payloads.resize(n);
    e.due = 1e18;
  }
  if (e.came[i]) throw CommError(skein::text("rank {} came to exchange {} twice", rank, f.number));
  e.came[i] = true;
  if (now + f.limit < e.due) {
    e.due = now + f.limit;
    e.limit = f.limit;
    e.what = describe_exchange(f.payload, RankNames(g.members));
  }
  e.payloads[i] = std::move(f.payload);
  if (std::find(e.came.begin(), e.came.end(), false) != e.came.end()) {
    const auto missing = [&](std::size_t j) { return !e.came[j] && g.left[j]; };
    for (std::size_t j = 0; j < n; ++j)
      if (missing(j)) return fail_without(f.group, g, f.number, e, named(g, missing));
    return;
  }
  answer(g, f.group, f.number, e);
}

SKEIN_INLINE void CoordinatorState::answer(Group& g, std::uint32_t id, std::uint64_t number, const Exchange& e) {
  std::size_t bytes = 0;
  for (const std::string& p : e.payloads) bytes += p.size();
  if (bytes > most_from_ranks - 4096 - 8 * g.members.size())
    return fail(skein::text(
        "{} (call {}): the values of all ranks are {} bytes, and the coordinator carries control values, at most 256 MiB at once",
        e.what, number, bytes));
  std::string all;
  for (const std::string& p : e.payloads) append_part(all, p);
  const std::uint64_t ticket = ++tickets_;
  for (const int r : g.members) {
    Frame reply{Kind::Gathered, id, number, 0, {}};
    append_part(reply.payload, std::string_view(reinterpret_cast<const char*>(&ticket), sizeof ticket));
    reply.payload += all;
    send(r, std::move(reply));
  }
  g.exchanges.erase(number);
}

SKEIN_INLINE std::string CoordinatorState::missing_text(std::uint64_t number, const Exchange& e, const std::string& who) {
  std::string text;
  for (const std::string& payload : e.payloads)
    if (const std::optional<Signature> s = signature_of(payload); s && text.empty()) text = not_called_text(*s, who);
  return skein::text("{}{} (call {}): {}", text, e.what, number, who);
}

SKEIN_INLINE void CoordinatorState::fail_without(std::uint32_t id, Group& g, std::uint64_t number, const Exchange& e,
                                                 const std::string& who) {
  if (!g.why.empty()) fail(id, g, g.why);
  else fail(missing_text(number, e, who) + " returned and will not arrive");
}

SKEIN_INLINE void CoordinatorState::overdue(Group& g, std::uint64_t number, const Exchange& e) {
  const std::string who = named(g, [&](std::size_t i) { return !e.came[i]; });
  fail(missing_text(number, e, who) + " did not arrive within " + seconds_text(e.limit));
}

SKEIN_INLINE void CoordinatorState::open(int rank, const Frame& f) {
  std::vector<int> members(f.payload.size() / sizeof(int));
  if (f.payload.size() % sizeof(int) != 0 || members.empty() || members.size() > index(size_))
    throw CommError("a group without members");
  std::memcpy(members.data(), f.payload.data(), f.payload.size());
  std::vector<bool> seen(index(size_));
  for (const int m : members) {
    if (m < 0 || m >= size_ || seen[index(m)]) throw CommError(skein::text("a group names rank {} twice, or beyond the last", m));
    seen[index(m)] = true;
  }
  Group made;
  made.members = std::move(members);
  (void)place(made, rank);
  for (const int m : made.members) made.left.push_back(left_[index(m)]);
  const auto [at, fresh] = groups_.try_emplace(f.group, std::move(made));
  if (fresh) return;
  (void)place(at->second, rank);
  if (!at->second.verdict.empty())
    send(rank, {Kind::Fail, f.group, 0, 0, at->second.verdict});  // it came before this rank had one
}

SKEIN_INLINE void CoordinatorState::leave(int rank) {
  left_[index(rank)] = true;
  for (auto& [id, g] : groups_)
    if (std::find(g.members.begin(), g.members.end(), rank) != g.members.end()) leave(id, g, place(g, rank));
  std::erase_if(groups_, [](const auto& g) { return is_over(g.first, g.second); });
}

SKEIN_INLINE void CoordinatorState::leave(int rank, std::uint32_t id, const std::string& why) {
  Group& g = group(id);
  leave(id, g, place(g, rank), why);
  if (is_over(id, g)) groups_.erase(id);
}

SKEIN_INLINE void CoordinatorState::leave(std::uint32_t id, Group& g, std::size_t place, const std::string& why) {
  if (g.left[place] || failed()) return;
  g.left[place] = true;
  if (g.why.empty()) g.why = why;
  for (std::size_t i = 0; i < g.members.size(); ++i)
    if (i != place) send(g.members[i], {Kind::Left, id, place, 0, why});
  if (!g.verdict.empty()) return;
  for (const auto& [number, e] : g.exchanges)
    if (!e.came[place]) return fail_without(id, g, number, e, named(g, [&](std::size_t i) { return i == place; }));
}

SKEIN_INLINE bool CoordinatorState::is_over(std::uint32_t id, const Group& g) {
  return id != 0 && std::find(g.left.begin(), g.left.end(), false) == g.left.end();
}

SKEIN_INLINE void CoordinatorState::inquire(int rank, const Frame& f, double now) {
  Group& g = group(f.group);
  const std::size_t n = g.members.size();
  (void)place(g, rank);
  if (g.inquiry.running) return;
  g.inquiry = {true,
               f.number,
               now + std::min(2.0, std::max(0.3, f.limit / 4)),
               f.limit,
               f.payload,
               std::vector<bool>(n),
               std::vector<std::uint64_t>(n),
               std::vector<std::string>(n)};
  for (const int r : g.members) send(r, {Kind::Query, f.group, f.number, 0, {}});
}

SKEIN_INLINE void CoordinatorState::answer(int rank, const Frame& f) {
  Group& g = group(f.group);
  Inquiry& q = g.inquiry;
  const std::size_t i = place(g, rank);
  if (!q.running) return;
  q.answered[i] = true;
  q.started[i] = f.number;
  q.waits[i] = f.payload.substr(0, 300);
  for (std::size_t j = 0; j < q.answered.size(); ++j)
    if (!q.answered[j] && !left_[index(g.members[j])]) return;
  judge(g);
}

SKEIN_INLINE void CoordinatorState::judge(Group& g) {
  Inquiry& q = g.inquiry;
  q.running = false;
  const auto left = [&](std::size_t i) { return left_[index(g.members[i])]; };
  const auto silent = [&](std::size_t i) { return !left(i) && !q.answered[i]; };
  const auto behind = [&](std::size_t i) { return !left(i) && !silent(i) && q.started[i] <= q.call && q.waits[i].empty(); };
  const auto elsewhere = [&](std::size_t i) { return !left(i) && !silent(i) && q.started[i] <= q.call && !q.waits[i].empty(); };
  const auto any = [&](auto&& is) {
    for (std::size_t i = 0; i < g.members.size(); ++i)
      if (is(i)) return true;
    return false;
  };
  const std::string within = " within " + seconds_text(q.limit);
  TextList found("; ");
  if (any(behind)) found.add(named(g, behind) + " did not arrive" + within);
  if (any(silent)) found.add(named(g, silent) + " does not answer (stopped, or out of reach)");
  if (any(left)) found.add(named(g, left) + " returned and will not arrive");
  for (std::size_t i = 0; i < g.members.size(); ++i)
    if (elsewhere(i)) found.add(text("rank {} waits in {}", g.members[i], q.waits[i]));
  const std::string arrived = "all ranks have arrived, and it has not ended" + within;
  fail(text("{} (call {}): {}", q.what, q.call, found.or_words(arrived + ": look at the GPUs and the network between them")));
}

}  // namespace skein::inline SKEIN_ABI::comm::control
