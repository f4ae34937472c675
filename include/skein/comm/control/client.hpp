// SPDX-License-Identifier: Apache-2.0
// A rank's connection to the coordinator. One thread reads: it hands answers to the rank, answers the coordinator's questions
// even while the rank computes, watches calls that run on a device, and on a verdict aborts what the rank waits for.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "server.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// What a communicator has running on a device. Called by the client's thread.
class Watched {
 public:
  virtual ~Watched() = default;
  /// Calls of this rank so far; the group that they belong to.
  virtual std::uint64_t started() = 0;
  virtual std::uint32_t group() const = 0;
  /// Looks at what runs; true where something does. Called about a hundred times a second then, else when poke() was called.
  virtual bool tick() = 0;
  /// Ends what runs; others are told by the coordinator.
  virtual void abort(const std::string& verdict) = 0;
};

/// A rank's connection to the coordinator: control values, inquiries and verdicts. One thread of its own reads.
class Client {
 public:
  /// `server` only on rank 0.
  Client(Descriptor connection, int rank, int size, double deadline, std::unique_ptr<Server> server = nullptr);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// This machine's address in the network over which the ranks met: of the connection to the coordinator, on rank 0 of those
  /// that came; "" where there is none.
  std::string host() const { return server_ ? server_->host() : own_host(connection_); }
  double deadline() const { return deadline_.load(); }
  void set_deadline(double seconds) { deadline_.store(seconds); }

  /// Gives this rank's bytes for exchange `number` of the group and returns the answer: a ticket, then every member's bytes, in
  /// their order. Blocking; throws CommError: the verdict.
  std::string exchange(std::uint32_t group, std::uint64_t number, std::string payload);
  /// The members of a new group; before its first exchange.
  void open(std::uint32_t group, const std::vector<int>& members);
  /// This rank makes no call of the group any more: the others are told, and why where an exception has left it.
  void leave(std::uint32_t group, const std::string& why = {});
  /// Some member of some group has said so.
  bool any_left() const { return any_left_.load(std::memory_order_acquire); }
  /// The member at this place of the group has said so.
  bool has_left(std::uint32_t group, int place);
  /// What the first said that an exception has made leave the group; `otherwise` where none has.
  std::string why_left(std::uint32_t group, const std::string& otherwise = {});
  /// How many members of the group have; 0 once all of them and this rank have: then it is forgotten.
  std::size_t left(std::uint32_t group);
  /// Waits until so many members of the group have, or all have failed, at most so long.
  void wait_left(std::uint32_t group, std::size_t members, std::chrono::nanoseconds limit);
  /// A call on the device has taken too long: the coordinator finds out who is missing, and tells all.
  void report_overdue(std::uint32_t group, std::uint64_t call, double limit, const std::string& what);
  /// Ends all ranks with a message.
  void fail(const std::string& message);
  bool failed() const { return failed_.load(); }
  /// Throws the verdict where there is one on all.
  void check();
  /// Ends the ranks of a group in this group alone; of group 0, which all are in, as fail() does.
  void fail_group(std::uint32_t group, const std::string& message);
  /// There is a verdict, on all or on the group.
  bool group_failed(std::uint32_t group);
  /// Throws the verdict where there is one, on all or on the group.
  void check_group(std::uint32_t group);

  void add(Watched* w);
  void remove(Watched* w);
  /// Something has begun to run.
  void poke() { (void)!::send(wake_.get(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT); }

 private:
  /// Under the lock: the verdict on all, else on the group; null where there is none.
  const std::string* verdict(std::uint32_t group) const;
  void set_group_failed(std::uint32_t group, const std::string& message);
  void send(const Frame& f);
  void set_failed(const std::string& message);

  void serve();
  void receive();
  void take(Frame& f);

  const int rank_, size_;
  std::atomic<double> deadline_;
  Descriptor connection_, wake_, woken_;
  std::unique_ptr<Server> server_;
  FrameReader reader_;
  std::mutex mutex_, write_mutex_;
  std::recursive_mutex watch_mutex_;  // a tick may find a failure
  std::condition_variable arrived_;
  std::pair<std::uint32_t, std::uint64_t> waited_{};
  std::optional<std::string> answer_;
  std::string waits_in_, message_;
  std::atomic<bool> failed_{false}, stopping_{false}, any_left_{false}, any_group_failed_{false};
  struct GroupState {
    RankNames names{};
    std::set<int> left{};                   // places of members that make no call any more
    std::string why{}, verdict{};           // why the first left that an exception made leave; what has ended the group
    std::size_t others = 0;                 // members beside this rank
    bool opened = false, own_left = false;  // by this rank: others may leave before it has opened the group
    bool all_left() const { return opened && own_left && left.size() >= others; }
  };
  std::map<std::uint32_t, GroupState> groups_;
  std::vector<Watched*> watched_;
  std::thread thread_;
};

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "client.ipp"
#endif
