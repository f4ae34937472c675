// SPDX-License-Identifier: Apache-2.0
// The messages of one rank of a simulation: letters that are on their way to it, its receives and sends that nobody has waited
// for yet, and when each is complete.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "group.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Sends and receives have numbers of their own, from 1. Letters are in the order in which they were sent.
class SimMailbox {
 public:
  using Letters = std::deque<SimLetter>;

  std::uint64_t add(const SimReceive& r);
  /// A send whose last byte leaves then.
  std::uint64_t add_send(double leaves);
  void put(SimLetter letter) { letters_.push_back(std::move(letter)); }

  /// Receives take the oldest letter of the sender that they name; open ones wait until they are asked for.
  void match();
  /// When the message of that number is complete, never where that is not known, `now` where it was waited for already; fixed:
  /// nothing that another rank does can change it.
  double completion(std::uint64_t number, double now, bool& fixed) const;
  /// The receive of that number, complete, which is forgotten; no peer (-1) where it was a send.
  SimReceive finish(std::uint64_t number);
  /// Null where that is none.
  const SimReceive* receive(std::uint64_t number) const;

  /// The rank's link brings nothing before then.
  double free_at() const { return free_at_; }
  void set_free_at(double time) { free_at_ = std::max(free_at_, time); }

 private:
  double due_of(const SimLetter& l) const { return std::max(l.departed, free_at_) + l.takes; }
  static bool fits(const SimReceive& r, const SimLetter& l);
  /// The receive has to share what comes: it is from any rank, or one that is of the same tag was started before it.
  bool is_open(std::uint64_t number, const SimReceive& r) const;
  /// An open receive, and the letter that comes to it.
  struct Share {
    std::uint64_t number = 0;
    std::size_t letter = 0;
    double due = sim_never;
  };
  /// What comes first is the oldest open receive's that it fits, and so on until this one gets a letter; empty where none is
  /// there.
  std::vector<Share> share_out(std::uint64_t number) const;
  void take(SimReceive& r, Letters::const_iterator l);

  double free_at_ = 0;
  std::uint64_t numbers_ = 0;
  std::map<std::uint64_t, double> sends_;
  std::map<std::uint64_t, SimReceive> receives_;
  Letters letters_;
};

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "mailbox.ipp"
#endif
