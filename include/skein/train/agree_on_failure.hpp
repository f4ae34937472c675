// SPDX-License-Identifier: Apache-2.0
// How a failure of one rank becomes one of all, with its reason: what loading, saving and commits have in common.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "saved_training.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Calls work(), and keeps what it throws as a text, which is not empty.
void noting(std::string& failure, const std::function<void()>& work);
/// What an exception says, which is not empty.
std::string reason_of(const std::exception_ptr& error);

/// Why this rank's training is not saved or not read: a fault of the file, which is a FileError of its path; or an exception of
/// what is saved or read, a layer's, a callback's or a communicator's, which the rank's caller gets as it is.
struct FileFailure {
  std::string reason{};            ///< empty: it has not failed
  std::exception_ptr exception{};  ///< null: a fault of the file

  bool failed() const { return !reason.empty(); }
  /// Keeps what a rank's own work throws, unless it has failed before.
  void note(const std::function<void()>& work);
  /// The failure of a reading that has thrown `error`, none where that is null. A FileError is a fault of the file; where the
  /// system reports no error, the reason ends with `hint`.
  static FileFailure of_reading(const std::exception_ptr& error, const std::string& hint);
  /// Throws the exception, or a FileError: `begin` and the reason.
  [[noreturn]] void raise(const std::string& path, const std::string& begin) const;
  /// Meets the other ranks. Where that fails after an exception of this rank's own, which may have left them in a call of their
  /// own, this one is what is thrown.
  void meet(const std::function<void()>& work) const;
};

/// This rank's side of something that all ranks read: read(before_change) calls before_change(hash) when all is read and checked,
/// and then changes what is trained. meet(hash, error) is collective, and throws on a rank without an error where another has
/// one. Where one rank cannot read, all throw, that one its own error, and nothing is changed on any. Two meetings where all is
/// well.
template <class Read, class Meet> void read_together(const Read& read, const Meet& meet) {
  FileFailure own;
  std::uint64_t hash = 0;
  bool met = false, agreed = false;
  own.note([&] {
    read([&](std::uint64_t of_file) {
      hash = of_file, met = true;
      meet(hash, std::exception_ptr());
      agreed = true;
    });
  });
  own.meet([&] {
    if (!met || agreed) meet(hash, own.exception);  // the others are in before_change, or behind it as this rank is
  });
  if (own.exception) std::rethrow_exception(own.exception);
}

/// All ranks call it after work that each did alone: `failure` is why this rank's failed, empty where it did not. Where all
/// worked, returns what each has to say (`own`), by rank. Else all throw: a rank that failed what `throw_own` throws, each other
/// one a CommError of the text of `say_other`, which gets the number by which messages call the first rank that failed, and its
/// reason. Collective.
std::vector<std::string> agree_on_failure(SavedTraining& training, const std::string& own, const std::string& failure,
                                          const std::function<void()>& throw_own,
                                          const std::function<std::string(int number, const std::string& reason)>& say_other);

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "agree_on_failure.ipp"
#endif
