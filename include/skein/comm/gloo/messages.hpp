// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks over gloo's connections. One thread receives, whether anybody has asked or not: a header from
// whoever comes first, then its bytes, straight to the receive that is waiting for them, or to memory that is kept until one is.
// Another sends, in the order of the calls. Both begin with the first message.
#pragma once
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <thread>

#include "../request.hpp"
#include "mesh.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Started messages of one rank: polled and waited for by their tickets.
class GlooMessages {
 public:
  static constexpr std::size_t short_bytes = 4096;  // never wait for their receiver

  /// `failed` is called by a thread where a connection has ended.
  GlooMessages(GlooMesh& mesh, GlooMesh::Failed failed) : mesh_(mesh), failed_(std::move(failed)) {}
  GlooMessages(const GlooMessages&) = delete;
  GlooMessages& operator=(const GlooMessages&) = delete;
  ~GlooMessages() { stop(); }

  Ticket start(bool sends, void* data, std::size_t bytes, int peer, int tag) {
    const std::lock_guard lock(mutex_);
    std::size_t i = 0;
    while (i < pool_.size() && pool_[i].active) ++i;
    if (i == pool_.size()) pool_.emplace_back();
    Transfer& t = pool_[i];
    t = {true, false, sends, false, static_cast<char*>(data), bytes, 0, peer, tag, ++started_};
    if (sends && peer == mesh_.rank()) {
      t.complete = true;
      deliver(peer, tag, {t.data, t.data + bytes});
    } else if (sends) {
      send(t);
    } else {
      take_kept(t);
      if (!receiver_.joinable()) receiver_ = std::thread([this] { guarded([&] { receive(); }); });
    }
    return {0, static_cast<std::int32_t>(i), peer};
  }
  bool test(Ticket& ticket) {
    const std::lock_guard lock(mutex_);
    Transfer& t = pool_[static_cast<std::size_t>(ticket.message)];
    if (!t.complete) return false;
    ticket.peer = t.peer;
    t.active = false;
    if (!t.sends && t.came > t.bytes)
      throw CommError(describe(t) + ": the message is longer than the receiver's span of " + std::to_string(t.bytes) + " bytes");
    if (!t.sends && t.came < t.bytes)
      throw CommError(describe(t) + ": the message has " + std::to_string(t.came) + " bytes, the receiver's span " +
                      std::to_string(t.bytes));
    return true;
  }
  /// Until the message is complete, or all have ended, at most so long.
  void wait(const Ticket& ticket, std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return stopping_ || pool_[static_cast<std::size_t>(ticket.message)].complete; });
  }
  std::string describe(const Ticket& ticket) {
    const std::lock_guard lock(mutex_);
    return describe(pool_[static_cast<std::size_t>(ticket.message)]);
  }
  /// Until what has been sent has left, at most so long.
  void deliver_all(std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return stopping_ || outgoing_.empty(); });
  }
  /// Ends the threads: nobody touches a caller's memory any more. After the mesh's abort().
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (receiver_.joinable()) receiver_.join();
    if (sender_.joinable()) sender_.join();
  }

 private:
  static constexpr std::uint64_t headers = std::uint64_t{1} << 60, payloads = headers + 1;  // slots that no collective has
  struct Header {
    std::uint64_t bytes = 0;
    std::int64_t tag = 0;
  };
  struct Transfer {
    bool active = false, complete = false, sends = false, matched = false;
    char* data = nullptr;
    std::size_t bytes = 0, came = 0;
    int peer = 0, tag = 0;
    std::uint64_t order = 0;
  };
  struct Outgoing {
    Transfer* transfer = nullptr;  // none of a short one, which is complete already
    Header header;
    int to = 0;
    const char* data = nullptr;
    std::vector<char> copy;
  };
  struct Kept {
    int from = 0, tag = 0;
    std::vector<char> data;
  };

  static std::string describe(const Transfer& t) {
    return std::string(t.sends ? "send to " : "recv from ") + (t.peer < 0 ? "any rank" : "rank " + std::to_string(t.peer)) +
           " (tag " + std::to_string(t.tag) + ")";
  }

  // ---- under the lock
  void send(Transfer& t) {
    Outgoing o{&t, {t.bytes, t.tag}, t.peer, t.data, {}};
    if (t.bytes <= short_bytes) {
      o.copy.assign(t.data, t.data + t.bytes);
      o.data = o.copy.data();
      o.transfer = nullptr;
      t.complete = true;
    }
    outgoing_.push_back(std::move(o));
    if (!sender_.joinable()) sender_ = std::thread([this] { guarded([&] { send_all(); }); });
    changed_.notify_all();
  }
  Transfer* receiver_of(int from, int tag) {
    Transfer* oldest = nullptr;
    for (Transfer& t : pool_)
      if (t.active && !t.sends && !t.complete && !t.matched && (t.peer < 0 || t.peer == from) && t.tag == tag &&
          (!oldest || t.order < oldest->order))
        oldest = &t;
    return oldest;
  }
  void deliver(int from, int tag, std::vector<char> data) {
    if (Transfer* const t = receiver_of(from, tag)) copy(*t, from, data);
    else kept_.push_back({from, tag, std::move(data)});
  }
  void take_kept(Transfer& t) {
    for (auto k = kept_.begin(); k != kept_.end(); ++k) {
      if (k->tag != t.tag || (t.peer >= 0 && t.peer != k->from)) continue;
      copy(t, k->from, k->data);
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

  // ---- the threads'
  template <class F> void guarded(F&& f) {
    const WithoutPipeSignal for_ever;
    try {
      f();
    } catch (const std::exception& e) {
      if (!mesh_.aborted()) failed_(e.what(), false);
    }
  }
  void send_all() {
    while (true) {
      Outgoing* o = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || !outgoing_.empty(); });
        if (stopping_) return;
        o = &outgoing_.front();
      }
      const auto header = mesh_.buffer(&o->header, sizeof o->header);
      header->send(o->to, headers);
      mesh_.wait_sent(*header);
      if (o->header.bytes) {
        const auto payload = mesh_.buffer(o->data, o->header.bytes);
        payload->send(o->to, payloads);
        mesh_.wait_sent(*payload);
      }
      const std::lock_guard lock(mutex_);
      if (o->transfer) o->transfer->complete = true;
      outgoing_.pop_front();
      changed_.notify_all();
    }
  }
  void receive() {
    std::vector<int> all;
    for (int r = 0; r < mesh_.size(); ++r)
      if (r != mesh_.rank()) all.push_back(r);
    while (true) {
      Header h;
      const auto header = mesh_.buffer(&h, sizeof h);
      header->recv(all, headers);
      const int from = mesh_.wait_received(*header), tag = static_cast<int>(h.tag);
      std::vector<char> data;
      Transfer* t = nullptr;
      {
        const std::lock_guard lock(mutex_);
        t = receiver_of(from, tag);
        if (t && h.bytes > t->bytes) t->matched = true;  // its bytes are taken off the connection, and it is told
        else if (t) t->matched = true, t->peer = from;
      }
      const bool fits = t && h.bytes <= t->bytes;
      if (!fits) data.resize(h.bytes);
      if (h.bytes) {
        const auto payload = mesh_.buffer(fits ? t->data : data.data(), h.bytes);
        payload->recv(from, payloads);
        mesh_.wait_received(*payload);
      }
      const std::lock_guard lock(mutex_);
      if (t) t->came = h.bytes, t->peer = from, t->complete = true;
      else deliver(from, tag, std::move(data));
      changed_.notify_all();
    }
  }

  GlooMesh& mesh_;
  GlooMesh::Failed failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Transfer> pool_;  // whose elements stay where they are
  std::list<Outgoing> outgoing_;
  std::list<Kept> kept_;
  std::uint64_t started_ = 0;
  bool stopping_ = false;
  std::thread receiver_, sender_;
};

}  // namespace skein::inline SKEIN_ABI::comm
