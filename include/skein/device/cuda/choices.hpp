// SPDX-License-Identifier: Apache-2.0
// What libraries decide while a program runs: which algorithm, how much workspace, and what they have no kernel for, so that
// another way is taken (a detour). Written down where plans are made, which is before step 1; the summary of an executor shows
// it.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "../../core/environment.hpp"
#include "stream.hpp"

namespace skein::inline SKEIN_ABI::cuda {

/// The notes of one thread about one device. Each sentence is kept once.
class Choices {
 public:
  /// A sentence on what was chosen.
  void note(std::string text) { add(notes_, std::move(text)); }
  /// A sentence on what a library does not do, and what runs instead. Throws DeviceError where detours are refused.
  void detour(std::string text) {
    if (refuses_) throw DeviceError("no detour is allowed here: " + text);
    add(detours_, std::move(text));
  }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<std::string>& detours() const { return detours_; }
  /// From now on a detour is an error: for tests of what a GPU is known to do (environment: SKEIN_DETOURS=0).
  void refuse_detours(bool refused = true) { refuses_ = refused; }

  /// A line each, detours first; empty where there is nothing to say.
  std::string text() const {
    std::string t;
    for (const std::string& d : detours_) t += "  detour: " + d + "\n";
    for (const std::string& n : notes_) t += "  " + n + "\n";
    return t;
  }

 private:
  static void add(std::vector<std::string>& to, std::string text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(std::move(text));
  }
  static bool refused_by_environment() { return !environment_switch("SKEIN_DETOURS", true); }

  std::vector<std::string> notes_, detours_;
  bool refuses_ = refused_by_environment();
};

/// The calling thread's, for the current device.
inline Choices& choices() {
  thread_local std::array<std::unique_ptr<Choices>, detail::most_devices> all;
  std::unique_ptr<Choices>& mine = all[detail::index_of(current_device())];
  if (!mine) mine = std::make_unique<Choices>();
  return *mine;
}

}  // namespace skein::inline SKEIN_ABI::cuda
