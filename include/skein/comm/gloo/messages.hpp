// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks over gloo's connections. gloo sends nothing before its receiver is there, so each other rank has
// threads of its own here, and nobody waits behind one that has not come. One receives from the start: a header, then the bytes,
// straight to the receive that waits for them, or, while there is room, to memory that is kept until one does. The other sends,
// in the order of the calls; it begins with the first message.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <system_error>
#include <thread>

#include "../request.hpp"
#include "../transfer.hpp"
#include "mesh.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Started messages of one rank: polled and waited for by their tickets.
class GlooMessages {
 public:
  static constexpr std::size_t short_bytes = 4096;  // never wait for their receiver

  static constexpr std::size_t kept_bytes = std::size_t{1} << 20;  // of one rank's messages that nobody has asked for

  /// `ended(rank, text)` is called by a thread where the connection to a rank has ended; returns whether that is no failure: the
  /// rank has left.
  using Ended = std::function<bool(int, const std::string&)>;
  /// Throws std::system_error where a thread does not start.
  GlooMessages(GlooMesh& mesh, Ended ended)
      : mesh_(mesh), ended_(std::move(ended)), peers_(static_cast<std::size_t>(mesh.size())) {
    try {
      for (int r = 0; r < mesh.size(); ++r)
        if (r != mesh.rank()) peer(r).receiver = std::thread([this, r] { guarded(r, [&] { receive(r); }); });
    } catch (const std::system_error&) {  // there are too many
      mesh.abort();
      stop();
      throw;
    }
  }
  GlooMessages(const GlooMessages&) = delete;
  GlooMessages& operator=(const GlooMessages&) = delete;
  ~GlooMessages() { stop(); }

  Ticket start(bool sends, void* data, std::size_t bytes, int peer, int tag) {
    const std::lock_guard lock(mutex_);
    const std::size_t i = free_place(pool_);
    Transfer& t = pool_[i];
    t = {true, false, sends, false, static_cast<char*>(data), bytes, 0, peer, tag, ++started_};
    if (sends && peer == mesh_.rank()) {
      t.complete = true;
      deliver(peer, tag, {t.data, t.data + bytes});
    } else if (sends) {
      send(t);
    } else {
      take_kept(t);
      changed_.notify_all();
    }
    return {0, static_cast<std::int32_t>(i), peer};
  }
  bool test(Ticket& ticket) {
    const std::lock_guard lock(mutex_);
    Transfer& t = pool_[static_cast<std::size_t>(ticket.message)];
    if (!t.complete) return false;
    ticket.peer = t.peer;
    t.end(mesh_.names());
    return true;
  }
  /// Until the message is complete, or all have ended, at most so long.
  void wait(const Ticket& ticket, std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return stopping_ || pool_[static_cast<std::size_t>(ticket.message)].complete; });
  }
  std::string describe(const Ticket& ticket) {
    const std::lock_guard lock(mutex_);
    return pool_[static_cast<std::size_t>(ticket.message)].text(mesh_.names());
  }
  /// No counterpart will come: the ranks that could be it have left. Who they are; empty where one has not.
  std::string left_behind(const Ticket& ticket) {
    const std::lock_guard lock(mutex_);
    const Transfer& t = pool_[static_cast<std::size_t>(ticket.message)];
    const auto could = [&](int r) { return may_be_peer(t.peer, mesh_.rank(), r); };
    for (int r = 0; r < mesh_.size(); ++r)
      if (t.complete || t.peer == mesh_.rank() || (could(r) && !peer(r).gone)) return "";
    return ranks_text(mesh_.names(), could);
  }
  /// Until what has been sent has left, or who was to get it, at most so long. True where it has.
  bool deliver_all(std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] {
      return stopping_ || std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.gone || p.outgoing.empty(); });
    });
  }
  /// Ends the threads: nobody touches a caller's memory any more. After the mesh's abort().
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    for (Peer& p : peers_) {
      if (p.receiver.joinable()) p.receiver.join();
      if (p.sender.joinable()) p.sender.join();
    }
  }

 private:
  static constexpr std::uint64_t headers = std::uint64_t{1} << 60, payloads = headers + 1;  // slots that no collective has
  struct Header {
    std::uint64_t bytes = 0;
    std::int64_t tag = 0;
  };
  struct Outgoing {
    Transfer* transfer = nullptr;  // none of a short one, which is complete already
    Header header;
    const char* data = nullptr;
    std::vector<char> copy;
  };
  struct Kept {
    int from = 0, tag = 0;
    std::vector<char> data;
  };
  /// What goes to one other rank, and comes from it.
  struct Peer {
    std::list<Outgoing> outgoing;
    std::size_t kept = 0;  // bytes
    bool gone = false;     // it has left
    std::thread receiver, sender;
  };

  Peer& peer(int r) { return peers_[static_cast<std::size_t>(r)]; }

  // ---- under the lock
  void send(Transfer& t) {
    const int to = t.peer;
    Outgoing o{&t, {t.bytes, t.tag}, t.data, {}};
    if (t.bytes <= short_bytes) {
      o.copy.assign(t.data, t.data + t.bytes);
      o.data = o.copy.data();
      o.transfer = nullptr;
      t.complete = true;
    }
    peer(to).outgoing.push_back(std::move(o));
    if (!peer(to).sender.joinable()) peer(to).sender = std::thread([this, to] { guarded(to, [&] { send_all(to); }); });
    changed_.notify_all();
  }
  void deliver(int from, int tag, std::vector<char> data) {
    if (Transfer* const t = receiver_of(pool_, from, tag)) copy(*t, from, data);
    else peer(from).kept += weight(data.size()), kept_.push_back({from, tag, std::move(data)});
  }
  void take_kept(Transfer& t) {
    for (auto k = kept_.begin(); k != kept_.end(); ++k) {
      if (k->tag != t.tag || (t.peer >= 0 && t.peer != k->from)) continue;
      copy(t, k->from, k->data);
      peer(k->from).kept -= weight(k->data.size());
      kept_.erase(k);
      return;
    }
  }
  static void copy(Transfer& t, int from, const std::vector<char>& data) {
    if (!data.empty() && t.bytes) std::memcpy(t.data, data.data(), std::min(data.size(), t.bytes));
    t.came = data.size();
    t.peer = from;
    t.complete = true;
  }

  static std::size_t weight(std::size_t bytes) { return bytes + sizeof(Kept); }
  /// A message that nobody has asked for yet may be taken off the connection: there is room, or someone waits for another that is
  /// behind it.
  bool may_keep(int from, std::size_t bytes) {
    if (peer(from).kept + weight(bytes) <= kept_bytes) return true;
    return std::any_of(pool_.begin(), pool_.end(), [&](const Transfer& t) { return t.is_open() && t.takes(from); });
  }

  // ---- the threads'
  template <class F> void guarded(int with, F&& f) {
    const WithoutPipeSignal for_ever;
    try {
      f();
    } catch (const std::exception& e) {
      if (mesh_.aborted() || !ended_(with, mesh_.ended_text(with, e.what()))) return;
      const std::lock_guard lock(mutex_);
      peer(with).gone = true;
      changed_.notify_all();
    }
  }
  void send_all(int to) {
    while (true) {
      Outgoing* o = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || !peer(to).outgoing.empty(); });
        if (stopping_) return;
        o = &peer(to).outgoing.front();
      }
      const auto header = mesh_.buffer(&o->header, sizeof o->header);
      header->send(to, headers);
      mesh_.wait_sent(*header);
      mesh_.send(to, payloads, o->data, o->header.bytes);
      const std::lock_guard lock(mutex_);
      if (o->transfer) o->transfer->complete = true;
      peer(to).outgoing.pop_front();
      changed_.notify_all();
    }
  }
  void receive(int from) {
    while (true) {
      Header h;
      const auto header = mesh_.buffer(&h, sizeof h);
      header->recv(from, headers);
      mesh_.wait_received(*header);
      const int tag = static_cast<int>(h.tag);
      std::vector<char> data;
      Transfer* t = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
          t = receiver_of(pool_, from, tag);
          return stopping_ || t || may_keep(from, h.bytes);
        });
        if (stopping_) return;
        if (t && h.bytes > t->bytes) t->matched = true;  // its bytes are taken off the connection, and it is told
        else if (t) t->matched = true, t->peer = from;
      }
      const bool fits = t && h.bytes <= t->bytes;
      if (!fits) data.resize(h.bytes);
      mesh_.receive(from, payloads, fits ? t->data : data.data(), h.bytes);
      const std::lock_guard lock(mutex_);
      if (t) t->came = h.bytes, t->peer = from, t->complete = true;
      else deliver(from, tag, std::move(data));
      changed_.notify_all();
    }
  }

  GlooMesh& mesh_;
  Ended ended_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Transfer> pool_;  // whose elements stay where they are
  std::list<Kept> kept_;
  std::uint64_t started_ = 0;
  bool stopping_ = false;
  std::deque<Peer> peers_;
};

}  // namespace skein::inline SKEIN_ABI::comm
