// SPDX-License-Identifier: Apache-2.0
// The progress of a training. On a terminal one line that is written over ten times a second (a bar); elsewhere (a file, a batch
// system, the ranks of mpirun, which see a pseudo-terminal) whole lines, one every ten seconds. The line of an epoch's end stays
// in both. SKEIN_PROGRESS=bar, lines or off says it for all programs. What the line says is a pure function; Progress only
// decides when.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../core/clock.hpp"
#include "../core/config.hpp"
#include "records.hpp"
#include "text.hpp"

SKEIN_BEGIN_COLD

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
double seconds_left(double elapsed, std::int64_t steps_done, std::int64_t steps_in_all);

namespace detail {
/// 950, 12.3k, 4.56M: three digits are enough.
void append_rate(std::string& text, double value);
/// 0:07, 12:34, 1:02:03, 2 d 03:04:05.
void append_duration(std::string& text, double seconds);
void append_percent(std::string& text, const char* label, double share, int decimals);
void append_scores(std::string& text, double loss, double accuracy);
void append_pace(std::string& text, double samples_per_second, double exposed);
}  // namespace detail

/// Appends the line of a running epoch, cut to so many columns (0: as long as it is). What was not measured is left out; a
/// loss that is NaN is shown, since it is news.
void append_progress(std::string& text, const ProgressState& state, int columns = 0);

/// Appends the line that stays after an epoch.
void append_epoch(std::string& text, const EpochRecord& epoch, int epochs);

/// Where and how often the progress is written.
struct ProgressOptions {
  /// Detect: what SKEIN_PROGRESS says, else a bar where the stream is a terminal and no launcher (mpirun, srun) stands between.
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
  /// Throws ArgumentError where SKEIN_PROGRESS has another value.
  explicit Progress(const ProgressOptions& options = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  /// Whether update() would write now: so that the state need not be made in vain (a running loss costs a reduction). Where
  /// there is no terminal, the first call only starts the interval.
  bool due(double now = seconds_now());
  /// Writes the line if it is time for one.
  void update(const ProgressState& state, double now = seconds_now());
  /// Writes the line of the epoch, which stays.
  void epoch(const EpochRecord& record, int epochs);
  /// Writes a line of its own that stays: why the training stopped, what was saved.
  void line(std::string_view message);
  /// Leaves the cursor on an empty line.
  void finish();

 private:
  void write(const ProgressState& state, double now);
  void clear_line();
  int columns() const;

  ProgressOptions options_;
  bool terminal_ = false;
  double last_ = not_measured;
  std::size_t shown_ = 0;
  std::string text_;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "progress.ipp"
#endif
