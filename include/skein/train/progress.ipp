// SPDX-License-Identifier: Apache-2.0
// The bodies of progress.hpp.
#pragma once
#include <cstdlib>

#include "../core/error.hpp"
#include "progress.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE double seconds_left(double elapsed, std::int64_t steps_done, std::int64_t steps_in_all) {
  if (steps_done <= 0) return not_measured;
  return elapsed / static_cast<double>(steps_done) * static_cast<double>(steps_in_all - steps_done);
}

}  // namespace skein::inline SKEIN_ABI::train

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE void append_rate(std::string& text, double value) {
  const char* unit = value >= 999.5e6 ? "G" : value >= 999.5e3 ? "M" : value >= 999.5 ? "k" : "";
  const double scaled = value / (*unit == 'G' ? 1e9 : *unit == 'M' ? 1e6 : *unit == 'k' ? 1e3 : 1);
  append_fixed(text, scaled, *unit == 0 ? 0 : scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2);
  text += unit;
}

SKEIN_INLINE void append_duration(std::string& text, double seconds) {
  const std::int64_t s = std::llround(seconds < 0 ? 0 : seconds < 1e15 ? seconds : 1e15);
  const auto two = [&](std::int64_t n) { append_integer(text += n < 10 ? "0" : "", n); };
  const std::int64_t days = s / 86400, hours = s / 3600 % 24, minutes = s / 60 % 60;
  if (days > 0) append_integer(text, days), text += " d ", two(hours), text += ':', two(minutes);
  else if (hours > 0) append_integer(text, hours), text += ':', two(minutes);
  else append_integer(text, minutes);
  text += ':', two(s % 60);
}

SKEIN_INLINE void append_percent(std::string& text, const char* label, double share, int decimals) {
  text += label;
  append_fixed(text, 100 * share, decimals);
  text += " %";
}

SKEIN_INLINE void append_scores(std::string& text, double loss, double accuracy) {
  if (loss == loss || accuracy != accuracy) append_digits(text += "  loss ", loss, 4);
  if (accuracy == accuracy) append_percent(text, "  accuracy ", accuracy, 2);
}

SKEIN_INLINE void append_pace(std::string& text, double samples_per_second, double exposed) {
  if (samples_per_second == samples_per_second) append_rate(text += "  ", samples_per_second), text += " samples/s";
  if (exposed == exposed) append_percent(text, "  exposed communication ", exposed, 1);
}

}  // namespace skein::inline SKEIN_ABI::train::detail

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE void append_progress(std::string& text, const ProgressState& state, int columns) {
  const std::size_t start = text.size();
  append_integer(text += "epoch ", state.epoch);
  append_integer(text += '/', state.epochs);
  text += ' ';
  if (state.steps > 0) {
    constexpr int width = 20;
    const double share = static_cast<double>(state.step) / static_cast<double>(state.steps);
    const int full = static_cast<int>(width * (share < 0 ? 0 : share > 1 ? 1 : share));
    text.append(" [").append(static_cast<std::size_t>(full), '=').append(full < width ? ">" : "");
    text.append(static_cast<std::size_t>(full < width ? width - full - 1 : 0), ' ').append("] ");
    append_integer(text, state.step);
    append_integer(text += '/', state.steps);
  } else {
    append_integer(text += " step ", state.step);
  }
  detail::append_scores(text, state.loss, state.accuracy);
  detail::append_pace(text, state.samples_per_second, state.exposed_communication);
  if (state.seconds_left == state.seconds_left) detail::append_duration(text += "  ", state.seconds_left), text += " left";
  if (columns > 0 && text.size() - start > static_cast<std::size_t>(columns))
    text.resize(start + static_cast<std::size_t>(columns));
}

SKEIN_INLINE void append_epoch(std::string& text, const EpochRecord& epoch, int epochs) {
  append_integer(text += "epoch ", epoch.epoch);
  append_integer(text += '/', epochs);
  text += ' ';
  detail::append_scores(text, epoch.training.loss, epoch.training.accuracy);
  if (epoch.validation.measured()) {
    text += "  validation";
    detail::append_scores(text, epoch.validation.loss, epoch.validation.accuracy);
    for (int i = 0; i < epoch.validation.metrics(); ++i) {
      text.append("  ").append(epoch.validation.metric_name(i)).append(" ");
      append_digits(text, epoch.validation.metric_value(i), 4);
    }
  }
  detail::append_pace(text, epoch.samples_per_second,
                      epoch.exposed_communication > 0 ? epoch.exposed_communication : not_measured);
  append_fixed(text += "  ", epoch.seconds, epoch.seconds < 10 ? 2 : 1);
  text += " s";
}

namespace detail {
/// A launcher reads what the ranks write, through pseudo-terminals: whether it has a terminal itself, they cannot know.
inline bool launched() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MPI_LOCALRANKID", "SLURM_PROCID", "FLUX_TASK_RANK"})
    if (std::getenv(name)) return true;
  return false;
}
inline bool is_terminal(std::FILE* stream) {
  const int handle = ::fileno(stream);
  return handle >= 0 && ::isatty(handle) == 1;
}
}  // namespace detail

SKEIN_INLINE Progress::Progress(const ProgressOptions& options) : options_(options) {
  using Terminal = ProgressOptions::Terminal;
  if (options.rank != 0) options_.stream = nullptr;
  if (!options_.stream) return;
  const char* set = std::getenv("SKEIN_PROGRESS");
  const std::string_view wanted = options.terminal != Terminal::Detect || !set ? "" : set;
  if (wanted == "off") options_.stream = nullptr;
  else if (wanted == "bar" || wanted == "lines") terminal_ = wanted == "bar";
  else if (!wanted.empty()) throw ArgumentError("SKEIN_PROGRESS=" + printable(wanted) + " is not bar, lines or off");
  else if (options.terminal == Terminal::Detect) terminal_ = detail::is_terminal(options.stream) && !detail::launched();
  else terminal_ = options.terminal == Terminal::Yes;
  text_.reserve(1024);
}

SKEIN_INLINE bool Progress::due(double now) {
  if (!options_.stream) return false;
  if (last_ != last_) last_ = terminal_ ? now - options_.refresh_every : now;
  return now - last_ >= (terminal_ ? options_.refresh_every : options_.line_every);
}

SKEIN_INLINE void Progress::update(const ProgressState& state, double now) {
  if (due(now)) write(state, now);
}

SKEIN_INLINE void Progress::epoch(const EpochRecord& record, int epochs) {
  if (!options_.stream) return;
  text_.clear();
  append_epoch(text_, record, epochs);
  line(text_);
}

SKEIN_INLINE void Progress::line(std::string_view message) {
  if (!options_.stream) return;
  clear_line();
  std::fwrite(message.data(), 1, message.size(), options_.stream);
  std::fputc('\n', options_.stream);
  std::fflush(options_.stream);
}

SKEIN_INLINE void Progress::finish() {
  if (options_.stream && shown_ > 0) clear_line(), std::fflush(options_.stream);
}

SKEIN_INLINE void Progress::write(const ProgressState& state, double now) {
  last_ = now;
  text_.clear();
  append_progress(text_, state, terminal_ ? columns() - 1 : 0);
  if (!terminal_) return line(text_);
  const std::size_t length = text_.size();
  if (length < shown_) text_.append(shown_ - length, ' ');
  shown_ = length;
  std::fputc('\r', options_.stream);
  std::fwrite(text_.data(), 1, text_.size(), options_.stream);
  std::fflush(options_.stream);
}

SKEIN_INLINE void Progress::clear_line() {
  if (shown_ == 0) return;
  std::fprintf(options_.stream, "\r%*s\r", static_cast<int>(shown_), "");
  shown_ = 0;
}

SKEIN_INLINE int Progress::columns() const {
  winsize size{};
  return ::ioctl(::fileno(options_.stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
