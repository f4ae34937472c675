// SPDX-License-Identifier: Apache-2.0
// The bodies of model_file.hpp.
#pragma once
#include "model_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE void add_records(CheckpointWriter& writer, std::int64_t steps, const TrainingPosition& place, const History& history,
                              const std::string& callbacks) {
  writer.add_object("steps", steps);
  writer.add_object("place", place);
  writer.add_object("history", history);
  writer.add_object("callbacks", callbacks);
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
