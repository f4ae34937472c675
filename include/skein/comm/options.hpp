// SPDX-License-Identifier: Apache-2.0
// How long a communicator waits, and what it checks. Values come from the program, or from the environment.
#pragma once
#include <cstddef>
#include <cstdlib>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI {

/// Options of ThreadComm (through spawn) and MpiComm.
struct CommOptions {
  /// Seconds until a rank that does not arrive is named in a CommError of those that wait (environment: SKEIN_DEADLINE).
  double deadline = environment("SKEIN_DEADLINE", 600.0);
  /// Compare kind, type and count of every collective also where it costs a message (environment: SKEIN_CHECK=1). Through
  /// shared memory, and between threads, they are always compared.
  bool check = environment("SKEIN_CHECK", 0.0) != 0.0;
  /// Collectives of ranks on one node go through shared memory (environment: SKEIN_SHARED_MEMORY=0 turns it off).
  bool shared_memory = environment("SKEIN_SHARED_MEMORY", 1.0) != 0.0;
  /// Bytes of one message of plain MPI; longer ones are cut (Open MPI 4.1 counts in int).
  std::size_t message = std::size_t{1} << 28;

  static double environment(const char* name, double otherwise) {
    const char* text = std::getenv(name);
    if (!text || !*text) return otherwise;
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    return end != text && value >= 0 ? value : otherwise;
  }
};

}  // namespace skein::inline SKEIN_ABI
