// SPDX-License-Identifier: Apache-2.0
// How long a communicator waits, and what it checks. Values come from the program, or from the environment.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../core/environment.hpp"
#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI {

/// In which order a communicator adds the values of its ranks.
enum class ReductionOrder {
  automatic,  ///< native where the ranks are on several nodes, else ranks
  ranks,      ///< ((x0 + x1) + x2) + ...: the same bits on all ranks, in every run, and over every transport
  native  ///< as MPI likes it between nodes: the same bits on all ranks, but others on another number of ranks or with another
          ///< MPI
};

/// Options of ThreadComm (through spawn), MpiComm and GlooComm. MpiComm compares those that say which messages there are (order,
/// node_size, message and all that ends in _bytes): ranks that were given different ones throw a CommError.
struct CommOptions {
  /// Seconds until a rank that does not arrive is named in a CommError of those that wait: more than 0, infinity for no deadline
  /// (environment: SKEIN_DEADLINE).
  double deadline = deadline_of_environment();
  /// Compare kind, type and count of every collective also where it costs a message (environment: SKEIN_CHECK=1). Of an MpiComm
  /// all ranks do, where one has it. Through shared memory, and between threads, they are always compared.
  bool check = environment_switch("SKEIN_CHECK", false);
  /// Collectives and messages of ranks on one node go through shared memory (environment: SKEIN_SHARED_MEMORY=0 turns it off).
  bool shared_memory = environment_switch("SKEIN_SHARED_MEMORY", true);
  /// Gradients, and what share() is asked for, lie in pages that the ranks of one node share, where that takes copies out of an
  /// all-reduce (environment: SKEIN_SHARED_PAGES=0 turns it off, for all ranks).
  bool shared_pages = environment_switch("SKEIN_SHARED_PAGES", true);
  /// Bytes of one message of plain MPI, at least 4096; longer ones are cut, also at 1 GiB (Open MPI 4.1 counts in int). A
  /// GlooComm cuts what goes between machines so, at 64 MiB too.
  std::size_t message = std::size_t{1} << 28;
  /// The order of the reductions of an MpiComm (environment: SKEIN_REDUCTION_ORDER=ranks or native). Through shared memory,
  /// ranks of one node always reduce in the order of the ranks.
  ReductionOrder order = order_of_environment();
  /// How an all-reduce in native order goes between nodes: up to doubling_bytes by recursive doubling; where the ranks are a
  /// power of two and a rank's part (bytes / ranks) is up to halving_bytes, by halving and doubling; what is longer round a ring.
  std::size_t doubling_bytes = std::size_t{32} << 10, halving_bytes = std::size_t{64} << 10;
  /// The longest message of those: shorter than what MPI sends without asking the receiver first (64 KiB in Open MPI over TCP).
  /// 0: whole messages, and what would go round the ring goes by MPI_Iallreduce, for a network of which a machine's own MPI knows
  /// more.
  std::size_t eager_bytes = 60000;
  /// Bytes from which an all-reduce in native order, where all nodes have as many ranks and more than one, is made within the
  /// nodes first, through shared memory, and between them by slices.
  std::size_t level_bytes = 1024;
  /// So many consecutive ranks count as a node (environment: SKEIN_NODE_SIZE). 0: those of one machine.
  int node_size = node_size_of_environment();

  /// What the environment says, where it does: each throws ArgumentError for what it cannot be.
  static double deadline_of_environment();
  static ReductionOrder order_of_environment();
  static int node_size_of_environment();
};

namespace comm {
/// The deadline, which is more than 0. Throws ArgumentError for another, and for what is no number; `of` says what gave it.
double checked_deadline(double seconds, const char* of);
/// The options. Throws ArgumentError for a deadline that is none, and for a negative .node_size.
const CommOptions& checked_options(const CommOptions& o);
}  // namespace comm

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "options.ipp"
#endif
