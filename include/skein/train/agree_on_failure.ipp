// SPDX-License-Identifier: Apache-2.0
// The bodies of agree_on_failure.hpp.
#pragma once
#include <cstddef>
#include <exception>

#include "agree_on_failure.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE void noting(std::string& failure, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& e) { failure = *e.what() ? e.what() : "an error without a text"; } catch (...) {
    failure = "an exception that is no std::exception";
  }
}

SKEIN_INLINE std::string reason_of(const std::exception_ptr& error) {
  std::string reason;
  noting(reason, [&] { std::rethrow_exception(error); });
  return reason;
}

SKEIN_INLINE void FileFailure::note(const std::function<void()>& work) {
  if (failed()) return;
  try {
    work();
  } catch (...) {
    exception = std::current_exception();
    reason = reason_of(exception);
  }
}

SKEIN_INLINE FileFailure FileFailure::of_reading(const std::exception_ptr& error, const std::string& hint) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const FileError& e) { return {reason_of(error) + (e.error() == 0 ? hint : ""), nullptr}; } catch (...) {
    return {reason_of(error), error};
  }
}

SKEIN_INLINE void FileFailure::raise(const std::string& path, const std::string& begin) const {
  if (exception) std::rethrow_exception(exception);
  throw FileError(path, -1, begin + reason);
}

SKEIN_INLINE void FileFailure::meet(const std::function<void()>& work) const {
  try {
    work();
  } catch (const CommError&) {
    if (exception) std::rethrow_exception(exception);
    throw;
  }
}

SKEIN_INLINE std::vector<std::string> agree_on_failure(
    SavedTraining& training, const std::string& own, const std::string& failure, const std::function<void()>& throw_own,
    const std::function<std::string(int rank, const std::string& reason)>& say_other) {
  std::vector<std::string> texts = training.texts_of_all(failure.empty() ? "+" + own : "!" + failure);
  if (!failure.empty()) throw_own();
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (!texts[r].starts_with('+'))
      throw CommError(say_other(training.rank_names().number(static_cast<int>(r)), texts[r].substr(1)));
    texts[r].erase(0, 1);
  }
  return texts;
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
