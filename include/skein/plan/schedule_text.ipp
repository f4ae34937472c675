// SPDX-License-Identifier: Apache-2.0
// The bodies of schedule_text.hpp.
#pragma once
#include "schedule_text.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan {

namespace detail {
/// The length of the shortest step that takes time, at most `most`.
inline double shortest_step(const Timeline& t, double most) {
  for (const TimedStep& s : t.steps)
    if (s.end > s.begin) most = std::min(most, s.end - s.begin);
  return most;
}
}  // namespace detail

SKEIN_INLINE std::string schedule_text(const Timeline& t, double unit) {
  if (unit <= 0) unit = std::max(detail::shortest_step(t, 1), t.length() / 100);
  std::size_t width = 2;
  const auto word = [&](const Step& s) {
    std::string w(1, "FBIWU"[static_cast<int>(s.task)]);
    if (s.task != Task::update) w += std::to_string(s.micro);
    if (t.stages > t.ranks) w += static_cast<char>('a' + s.stage / t.ranks % 26);
    return w;
  };
  for (const TimedStep& s : t.steps) width = std::max(width, word(s.step).size());
  std::string text;
  for (int r = 0; r < t.ranks; ++r) {
    std::vector<std::string> cells;
    const auto set = [&](double at, const std::string& w) {
      const auto c = static_cast<std::size_t>(std::max(0L, std::lround(at / unit)));
      if (cells.size() <= c) cells.resize(c + 1, ".");
      cells[c] = w;
    };
    for (const TimedStep& s : t.steps) {
      if (s.rank != r || (s.end <= s.begin && s.step.task == Task::update)) continue;
      for (double at = s.begin + unit; at < s.end - unit / 2; at += unit) set(at, "-");
      set(s.begin, word(s.step));
    }
    text += skein::text("rank {} |", r);
    for (const std::string& c : cells) text += " " + c + std::string(width - std::min(width, c.size()), c == "-" ? '-' : ' ');
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  }
  return text;
}

SKEIN_INLINE std::string schedule_text(const Schedule& s, const TaskLengths& lengths) {
  const Timeline t = timeline_of(s, lengths);
  constexpr double columns = 300;
  const double shortest = detail::shortest_step(t, t.length());
  const bool counts = shortest >= 1 && t.length() <= columns;  // in whole units, as the lengths that there are by themselves
  return schedule_text(t, counts || !(shortest > 0) ? 1 : std::max(shortest, t.length() / columns));
}

}  // namespace skein::inline SKEIN_ABI::plan

SKEIN_END_COLD
