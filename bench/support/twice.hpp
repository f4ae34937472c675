// SPDX-License-Identifier: Apache-2.0
// What are two workers worth on this machine? Two independent copies of the one-worker case, which share nothing but the machine,
// train at the same time: together they do so many times the work of one alone. Two where two cores are cores of their own, less
// where they share caches, memory or a clock. A training by two workers is judged against that.
#pragma once
#include <array>
#include <memory>

#include <skein/core/workers.hpp>

#include "slices.hpp"

namespace bench {

/// Two copies of a training on one thread each. T: has step().
template <class T> class TwoCopies {
 public:
  /// make() returns a std::unique_ptr<T>.
  template <class Make> explicit TwoCopies(Make&& make) : copies_{make(), make()} {}

  /// One copy, while the other core idles.
  Candidate one() {
    return candidate([this] { copies_[0]->step(); });
  }
  /// A step of both.
  Candidate both() {
    return [this](long n) {
      const auto steps = [&](skein::Worker& w) {
        for (long i = 0; i < n; ++i) copies_[static_cast<std::size_t>(w.index)]->step();
      };
      cores_.run(steps);
      return timed(1, [&] { cores_.run(steps); });
    };
  }

 private:
  std::array<std::unique_ptr<T>, 2> copies_;
  skein::Workers cores_{2};
};

}  // namespace bench
