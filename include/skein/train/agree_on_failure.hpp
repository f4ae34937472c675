// SPDX-License-Identifier: Apache-2.0
// How a failure of one rank becomes one of all, with its reason: what loading, saving and commits have in common.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "saved_training.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Calls work(), and keeps what it throws as a text, which is not empty.
void noting(std::string& failure, const std::function<void()>& work);

/// All ranks call it after work that each did alone: `failure` is why this rank's failed, empty where it did not. Where all
/// worked, returns what each has to say (`own`), by rank. Else all throw: a rank that failed what `throw_own` throws, each other
/// one a CommError of the text of `say_other`, which gets the first rank that failed and its reason. Collective.
std::vector<std::string> agree_on_failure(SavedTraining& training, const std::string& own, const std::string& failure,
                                          const std::function<void()>& throw_own,
                                          const std::function<std::string(int rank, const std::string& reason)>& say_other);

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "agree_on_failure.ipp"
#endif
