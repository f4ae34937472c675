// SPDX-License-Identifier: Apache-2.0
// A world of one: what a program without ranks gives to a policy. Every collective is a copy at most.
#pragma once
#include <utility>
#include <vector>

#include "../concepts.hpp"
#include "../messages.hpp"

namespace skein::inline SKEIN_ABI {

namespace comm {
/// Carries out every call at once. Messages of the rank to itself are kept until they are received; those of a tag go to its
/// receives in the order in which both were started.
class SelfEngine {
 public:
  void run(const CollectiveCall& o);
  Ticket start(const CollectiveCall& o);
  Ticket start_send(const void* data, std::size_t bytes, int, int tag);
  Ticket start_recv(void* data, std::size_t bytes, int, int tag);
  bool test(Ticket& t);
  void wait(Ticket& t);
  void progress() {}
  void abandon() { wanted_.clear(); }

 private:
  struct Wanted {
    std::uint64_t number;
    int tag;
    std::size_t bytes;
    void* data;
    bool complete = false;
    std::size_t came = 0;  // bytes
  };
  static void complete(Wanted& w, const void* data, std::size_t bytes);
  std::vector<Wanted>::iterator find(const Ticket& t);

  std::vector<std::pair<int, std::string>> sent_;  // a few at most
  std::vector<Wanted> wanted_;
  std::uint64_t received_ = 0;
};
}  // namespace comm

/// A world of one rank, without threads or processes.
class SelfComm : public comm::Messages<SelfComm, Cpu> {
 public:
  static constexpr std::string_view name = "SelfComm";
  static constexpr comm::Capabilities capabilities{comm::Capability::nodes, comm::Capability::splits};
  using engine_type = comm::SelfEngine;
  template <class T, class Op> static constexpr bool reduces = Reduction<Op, T>;

  int rank() const { return 0; }
  int size() const { return 1; }
  /// Ranks that share this machine's cores.
  int node_size() const { return 1; }
  /// A world of one again.
  SelfComm split(int color, int = 0) {
    comm::check_color(color);
    return {};
  }
  engine_type& engine() { return engine_; }

 private:
  engine_type engine_;
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "self_comm.ipp"
#endif
