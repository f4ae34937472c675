// SPDX-License-Identifier: Apache-2.0
// The clock of progress lines, records, time limits and parts of a step: seconds that never run backwards. Not <chrono>, which
// costs every includer a third of a second of compile time.
#pragma once
#include <ctime>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// Seconds since some fixed instant, monotonic.
inline double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Adds the seconds for which it lives to a sum.
class AddedSeconds {
 public:
  explicit AddedSeconds(double& sum) : sum_(sum), since_(seconds_now()) {}
  ~AddedSeconds() { sum_ += seconds_now() - since_; }
  AddedSeconds(const AddedSeconds&) = delete;
  AddedSeconds& operator=(const AddedSeconds&) = delete;

 private:
  double& sum_;
  double since_;
};

}  // namespace skein::inline SKEIN_ABI
