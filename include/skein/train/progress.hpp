// SPDX-License-Identifier: Apache-2.0
// The progress line of a training. On a terminal one line that is written over ten times a second; elsewhere (a file, a
// batch system) whole lines, one every ten seconds. The line of an epoch's end stays in both. What the line says is a pure
// function; Progress only decides when.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../core/config.hpp"
#include "clock.hpp"
#include "records.hpp"
#include "text.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Where a training stands, of all ranks together.
struct ProgressState {
  int epoch = 1, epochs = 1;         // from 1
  std::int64_t step = 0, steps = 0;  // within the epoch
  double loss = not_measured;        // running mean of the epoch
  double accuracy = not_measured;    // share
  double samples_per_second = not_measured;
  double exposed_communication = not_measured;  // share; not measured in a world of one
  double seconds_left = not_measured;           // of the whole training
};

/// The time that is left at the pace so far; NaN before the first step.
inline double seconds_left(double elapsed, std::int64_t steps_done, std::int64_t steps_in_all) {
  if (steps_done <= 0) return not_measured;
  return elapsed / static_cast<double>(steps_done) * static_cast<double>(steps_in_all - steps_done);
}

namespace detail {
/// 950, 12.3k, 4.56M: three digits are enough.
inline void append_rate(std::string& text, double value) {
  const char* unit = value >= 999.5e6 ? "G" : value >= 999.5e3 ? "M" : value >= 999.5 ? "k" : "";
  const double scaled = value / (*unit == 'G' ? 1e9 : *unit == 'M' ? 1e6 : *unit == 'k' ? 1e3 : 1);
  append_fixed(text, scaled, *unit == 0 ? 0 : scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2);
  text += unit;
}
/// 0:07, 12:34, 1:02:03, 2 d 03:04:05.
inline void append_duration(std::string& text, double seconds) {
  const std::int64_t s = std::llround(seconds < 0 ? 0 : seconds < 1e15 ? seconds : 1e15);
  const auto two = [&](std::int64_t n) { append_integer(text += n < 10 ? "0" : "", n); };
  const std::int64_t days = s / 86400, hours = s / 3600 % 24, minutes = s / 60 % 60;
  if (days > 0) append_integer(text, days), text += " d ", two(hours), text += ':', two(minutes);
  else if (hours > 0) append_integer(text, hours), text += ':', two(minutes);
  else append_integer(text, minutes);
  text += ':', two(s % 60);
}
inline void append_percent(std::string& text, const char* label, double share, int decimals) {
  text += label;
  append_fixed(text, 100 * share, decimals);
  text += " %";
}
inline void append_scores(std::string& text, double loss, double accuracy) {
  if (loss == loss || accuracy != accuracy) append_digits(text += "  loss ", loss, 4);
  if (accuracy == accuracy) append_percent(text, "  accuracy ", accuracy, 2);
}
inline void append_pace(std::string& text, double samples_per_second, double exposed) {
  if (samples_per_second == samples_per_second) append_rate(text += "  ", samples_per_second), text += " samples/s";
  if (exposed == exposed) append_percent(text, "  exposed communication ", exposed, 1);
}
}  // namespace detail

/// Appends the line of a running epoch, cut to so many columns (0: as long as it is). What was not measured is left out; a
/// loss that is NaN is shown, since it is news.
inline void append_progress(std::string& text, const ProgressState& state, int columns = 0) {
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

/// Appends the line that stays after an epoch.
inline void append_epoch(std::string& text, const EpochRecord& epoch, int epochs) {
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

/// Where and how often the progress is written.
struct ProgressOptions {
  enum class Terminal { Detect, Yes, No };
  std::FILE* stream = stdout;
  int rank = 0;  // only rank 0 writes
  Terminal terminal = Terminal::Detect;
  double line_every = 10;      // seconds between lines where there is no terminal
  double refresh_every = 0.1;  // seconds between refreshes of a terminal's line
};

/// Writes the progress of a training; on ranks other than 0, or without a stream, nothing. Does not own the stream.
class Progress {
 public:
  explicit Progress(const ProgressOptions& options = {}) : options_(options) {
    if (options.rank != 0) options_.stream = nullptr;
    if (!options_.stream) return;
    const int handle = ::fileno(options_.stream);
    terminal_ = options.terminal == ProgressOptions::Terminal::Yes ||
                (options.terminal == ProgressOptions::Terminal::Detect && handle >= 0 && ::isatty(handle) == 1);
    text_.reserve(1024);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  /// Whether update() would write now: so that the state need not be made in vain (a running loss costs a reduction). Where
  /// there is no terminal, the first call only starts the interval.
  bool due(double now = seconds_now()) {
    if (!options_.stream) return false;
    if (last_ != last_) last_ = terminal_ ? now - options_.refresh_every : now;
    return now - last_ >= (terminal_ ? options_.refresh_every : options_.line_every);
  }
  /// Writes the line if it is time for one.
  void update(const ProgressState& state, double now = seconds_now()) {
    if (due(now)) write(state, now);
  }
  /// Writes the line of the epoch, which stays.
  void epoch(const EpochRecord& record, int epochs) {
    if (!options_.stream) return;
    text_.clear();
    append_epoch(text_, record, epochs);
    line(text_);
  }
  /// Writes a line of its own that stays: why the training stopped, what was saved.
  void line(std::string_view message) {
    if (!options_.stream) return;
    clear_line();
    std::fwrite(message.data(), 1, message.size(), options_.stream);
    std::fputc('\n', options_.stream);
    std::fflush(options_.stream);
  }
  /// Leaves the cursor on an empty line.
  void finish() {
    if (options_.stream && shown_ > 0) clear_line(), std::fflush(options_.stream);
  }

 private:
  void write(const ProgressState& state, double now) {
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
  void clear_line() {
    if (shown_ == 0) return;
    std::fprintf(options_.stream, "\r%*s\r", static_cast<int>(shown_), "");
    shown_ = 0;
  }
  int columns() const {
    winsize size{};
    return ::ioctl(::fileno(options_.stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
  }

  ProgressOptions options_;
  bool terminal_ = false;
  double last_ = not_measured;
  std::size_t shown_ = 0;
  std::string text_;
};

}  // namespace skein::inline SKEIN_ABI::train
