// SPDX-License-Identifier: Apache-2.0
// The bodies of rendezvous.hpp.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdio>

#include "rendezvous.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE void check_place(const RankPlace& p) {
  if (p.size < 1 || p.rank < 0 || p.rank >= p.size)
    throw ArgumentError(skein::text("there is no rank {} among {}: ranks count from 0", p.rank, p.size));
  (void)checked_deadline(p.deadline, "a meeting of ranks");
}

}  // namespace skein::inline SKEIN_ABI::comm::control

namespace skein::inline SKEIN_ABI::comm::control::detail {

SKEIN_INLINE RankAcceptor::RankAcceptor(const Listener& listener, const RankPlace& place, std::string where)
    : listener_(&listener), place_(place), where_(std::move(where)), ranks_(static_cast<std::size_t>(place.size)),
      deadline_(place.deadline) {}

SKEIN_INLINE std::vector<Descriptor> RankAcceptor::run() {
  deadline_.start();
  while (came_ < place_.size - 1) {
    const double left = deadline_.left();
    if (left > 0) wait(poll_milliseconds(deadline_, left));
    else if (!pending_.empty()) last_look_.start(), wait(poll_milliseconds(last_look_, 1));
    admit();
    if (came_ < place_.size - 1 && left <= 0 && (pending_.empty() || last_look_.over())) end_all(missing_text());
  }
  std::vector<Descriptor> ranks;
  for (Came& c : ranks_) {
    if (c.fd) tell(c.fd, {Kind::Welcome, 0, 0, 0, {}});
    ranks.push_back(std::move(c.fd));
  }
  return ranks;
}

SKEIN_INLINE void RankAcceptor::wait(int milliseconds) {
  std::vector<pollfd> polled{{listener_->get(), POLLIN, 0}};
  for (const PendingPeer& g : pending_) polled.push_back({g.fd.get(), POLLIN, 0});
  (void)::poll(polled.data(), polled.size(), milliseconds);
}

SKEIN_INLINE void RankAcceptor::admit() {
  accept_all();
  pending_.erase(std::remove_if(pending_.begin(), pending_.end(), [this](PendingPeer& g) { return finished(g); }),
                 pending_.end());
}

SKEIN_INLINE void RankAcceptor::accept_all() {
  for (int i = 0; i < 1024; ++i) {  // then those that are here have a turn
    Descriptor d = listener_->accept();
    if (!d) {
      // Without room for one more connection, which poll would report for ever.
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
      if (pending_.empty()) return std::this_thread::sleep_for(std::chrono::milliseconds(10));
      drop_oldest();
      continue;
    }
    if (pending_.size() >= most_pending()) drop_oldest();
    pending_.push_back({.fd = std::move(d), .since = deadline_.waited()});
    if (finished(pending_.back())) pending_.pop_back();  // its Hello may be here already
  }
}

SKEIN_INLINE void RankAcceptor::drop_oldest() {
  auto at = std::find_if(pending_.begin(), pending_.end(), [](const PendingPeer& g) { return !g.hello; });
  if (at == pending_.end()) at = pending_.begin();
  pending_.erase(at);
}

SKEIN_INLINE bool RankAcceptor::finished(PendingPeer& g) {
  char bytes[512];
  const ssize_t n = ::recv(g.fd.get(), bytes, sizeof bytes, 0);
  if (n > 0) g.reader.add(bytes, static_cast<std::size_t>(n));
  else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return true;
  while (true) {
    std::optional<Frame> f;
    try {
      f = g.reader.next();
    } catch (const CommError& e) { return refuse(g, e.what()); }
    if (!f) return deadline_.waited() - g.since > 5;  // however many bytes it sends
    if (hear(g, *f)) return true;
  }
}

SKEIN_INLINE bool RankAcceptor::hear(PendingPeer& g, const Frame& f) {
  if (!g.hello) {
    const std::optional<Hello> hello = f.kind == Kind::Hello ? unpack_hello(f.payload) : std::nullopt;
    if (!hello) return true;
    if (hello->tag != place_.key.tag()) return refuse(g, where_ + " belongs to another job");
    g.hello = hello;
    g.answer = random_nonce();
    tell(g.fd, {Kind::Heard, 0, 0, 0, pack(Heard{g.answer, proof_of(place_.key, Side::coordinator, *hello, g.answer)})});
    return false;
  }
  const std::optional<Digest> proof = f.kind == Kind::Proof ? unpack_proof(f.payload) : std::nullopt;
  if (!proof) return true;
  if (!equal(*proof, proof_of(place_.key, Side::rank, *g.hello, g.answer)))
    return refuse(g, where_ + " belongs to a job with another secret");
  take(g);
  return true;
}

SKEIN_INLINE bool RankAcceptor::refuse(PendingPeer& g, const std::string& why) {
  std::string text = "refused: " + why;  // with a path perhaps; the other side takes no more of a stranger
  if (text.size() > most_from_strangers) text.replace(most_from_strangers - 3, std::string::npos, "...");
  tell(g.fd, {Kind::Fail, 0, 0, 0, text});
  strangers_ = peer_host(g.fd);
  return true;
}

SKEIN_INLINE void RankAcceptor::take(PendingPeer& g) {
  const std::string who = skein::text("rank {}", g.hello->rank);
  if (g.hello->size != place_.size) {
    late_ = std::move(g.fd);
    end_all(
        skein::text("{} believes in {} ranks, rank 0 in {}: start all with the same number", who, g.hello->size, place_.size));
  }
  const bool known = g.hello->rank >= 1 && g.hello->rank < place_.size;
  Came& came = ranks_[known ? static_cast<std::size_t>(g.hello->rank) : 0];
  // It has come before: it has lost that connection, or its process has ended and was started again. Or there are two.
  if (!known || (came.fd && came.nonce != g.hello->nonce && is_open(came.fd))) {
    late_ = std::move(g.fd);
    end_all(skein::text("two processes say that they are {} of {}: each needs a number of its own, from 0", who, place_.size));
  }
  if (!came.fd) ++came_;
  came = {std::move(g.fd), g.hello->nonce};
  if (came_ < place_.size - 1) return;
  for (Came& c : ranks_)  // a process may have ended since it came: it is started again, or missed
    if (c.fd && !is_open(c.fd)) c = {}, --came_;
}

SKEIN_INLINE std::string RankAcceptor::missing_text() const {
  return ranks_text(place_.size, [&](int r) { return r > 0 && !ranks_[static_cast<std::size_t>(r)].fd; }) +
         " did not arrive at " + where_ + " within " + seconds_text(place_.deadline) +
         (strangers_.empty() ? ""
                             : "; who came from " + strangers_ +
                                   " is not of this job: is this port another job's too, or does SKEIN_JOB_SECRET differ?");
}

SKEIN_INLINE void RankAcceptor::end_all(const std::string& text) {
  for (const Came& c : ranks_)
    if (c.fd) tell(c.fd, {Kind::Fail, 0, 0, 0, text});
  if (late_) tell(late_, {Kind::Fail, 0, 0, 0, text});
  throw CommError(text);
}

SKEIN_INLINE std::optional<Frame> read_frame(const Descriptor& d, FrameReader& reader, double seconds, Deadline& clock) {
  const double end = clock.waited() + seconds;
  while (true) {
    if (std::optional<Frame> f = reader.next()) return f;
    const double left = end - clock.waited();
    if (left <= 0) return std::nullopt;
    pollfd p{d.get(), POLLIN, 0};
    (void)::poll(&p, 1, poll_milliseconds(clock, left));
    char bytes[4096];
    const ssize_t n = ::recv(d.get(), bytes, sizeof bytes, 0);
    if (n > 0) reader.add(bytes, static_cast<std::size_t>(n));
    else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return std::nullopt;
  }
}

SKEIN_INLINE std::string invitation(const Listener& listener) {
  std::string said = to_hex(random_nonce());
  if (listener.loopback()) return said + " " + Address{listener.interface(), listener.port()}.text();
  for (const std::string& host : own_hosts()) said += " " + Address{host, listener.port()}.text();
  return said;
}

SKEIN_INLINE std::vector<Try> invited(const std::string& said) {
  std::vector<Try> addresses;
  Nonce secret;
  if (!from_hex(std::string_view(said).substr(0, said.find(' ')), secret)) throw CommError("rank 0 sent no address");
  for (std::size_t at = said.find(' '); at != std::string::npos; at = said.find(' ', at + 1))
    addresses.push_back({parse_address(said.substr(at + 1, said.find(' ', at + 1) - at - 1)), with_secret({}, secret)});
  return addresses;
}

/// What one address has brought: the connection, once all ranks have come. Nothing, and why, where it is not this job's
/// coordinator. Throws its verdict.
inline Descriptor try_to_join(const Try& t, const RankPlace& place, const Nonce& process, double patience, Deadline& deadline,
                              std::string& why) {
  Descriptor d = try_connect(t.at, std::min(3.0, std::max(0.05, deadline.left())), deadline, why);
  if (!d) return {};
  FrameReader reader;
  const Hello hello{place.rank, place.size, t.key.tag(), process};
  std::optional<Frame> f;
  try {
    (void)write_all(d.get(), encode({Kind::Hello, 0, 0, 0, pack(hello)}), 2);
    f = read_frame(d, reader, std::min(patience, std::max(0.5, deadline.left())), deadline);
    if (f && f->kind == Kind::Fail) return why = f->payload, Descriptor();
    const std::optional<Heard> heard = f && f->kind == Kind::Heard ? unpack_heard(f->payload) : std::nullopt;
    if (!heard) return why = t.at.text() + " answers, but not as this job's coordinator", Descriptor();
    if (!equal(heard->proof, proof_of(t.key, Side::coordinator, hello, heard->nonce)))
      return why = t.at.text() + " answers, but cannot prove that it is of this job", Descriptor();
    reader.trust();
    (void)write_all(d.get(), encode({Kind::Proof, 0, 0, 0, pack(proof_of(t.key, Side::rank, hello, heard->nonce))}), 2);
    f = read_frame(d, reader, place.deadline + 3, deadline);
    if (!f) return why = t.at.text() + " went away before all ranks had come", Descriptor();
  } catch (const CommError& e) { return why = t.at.text() + " answers, but " + e.what(), Descriptor(); }
  if (f->kind == Kind::Welcome) return d;
  throw CommError(f->kind == Kind::Fail ? f->payload : t.at.text() + " is no coordinator of this job");
}

/// Once in a process.
inline void say_open(const Listener& listener, const RankPlace& place, const std::string& where) {
  static std::atomic<bool> said{false};
  if (place.key.secret || listener.loopback() || place.size == 1 || said.exchange(true)) return;
  std::fprintf(stderr,
               "skein: rank 0 listens on %s without a secret: whoever reaches that port, and guesses the job's name, can be a "
               "rank. Give all ranks the same SKEIN_JOB_SECRET (export SKEIN_JOB_SECRET=$(openssl rand -hex 16)).\n",
               where.c_str());
}

}  // namespace skein::inline SKEIN_ABI::comm::control::detail

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE std::unique_ptr<Client> serve_at(const Listener& listener, const RankPlace& place, const std::string& where) {
  check_place(place);
  detail::say_open(listener, place, where);
  std::vector<Descriptor> ranks = detail::RankAcceptor(listener, place, where).run();
  auto [mine, coordinators] = connected_pair();
  ranks[0] = std::move(coordinators);
  return std::make_unique<Client>(std::move(mine), 0, place.size, place.deadline, std::make_unique<Server>(std::move(ranks)));
}

SKEIN_INLINE std::unique_ptr<Client> join_at(const std::function<std::vector<Try>(std::string& why)>& tries,
                                             const RankPlace& place, const std::string& where) {
  check_place(place);
  auto deadline = Deadline::from_now(place.deadline);
  const Nonce process = random_nonce();
  std::string why = "nothing is there";
  double interval = 0.01;
  while (true) {
    const std::vector<Try> all = deadline.count_whole([&] { return tries(why); });
    // Of several addresses some are others', who may accept a connection and say nothing.
    for (const Try& t : all)
      if (Descriptor d = detail::try_to_join(t, place, process, all.size() > 1 ? 1 : 5, deadline, why))
        return std::make_unique<Client>(std::move(d), place.rank, place.size, place.deadline);
    if (deadline.over())
      throw CommError(
          skein::text("rank {} did not find rank 0 at {} within {} ({}): does rank 0 run, and may this machine reach it",
                      place.rank, where, seconds_text(place.deadline), why));
    std::this_thread::sleep_for(std::chrono::milliseconds(poll_milliseconds(deadline, std::min(interval, deadline.left()))));
    interval = std::min(0.25, interval * 1.5);
  }
}

SKEIN_INLINE std::unique_ptr<Client> meet_at(const std::string& address, const RankPlace& place, int ports) {
  check_place(place);
  const Address a = parse_address(address);
  for (int i = 0; place.rank == 0; ++i) {
    try {
      const Address at{a.host, a.port + i};
      return serve_at(Listener(at), place, at.text());
    } catch (const PortTaken&) {
      if (i + 1 < ports) continue;
      // Who has the last port may be this job's other rank 0, which then tells both, on a busy machine after a while.
      auto patience = Deadline::from_now(std::min(5.0, place.deadline));
      std::string why;
      (void)detail::try_to_join({{a.host, a.port + i}, place.key}, place, random_nonce(), patience.limit(), patience, why);
      throw;
    }
  }
  const auto tries = [&](std::string&) {
    std::vector<Try> all;
    for (int i = 0; i < ports; ++i) all.push_back({{a.host, a.port + i}, place.key});
    return all;
  };
  return join_at(tries, place, a.text());
}

}  // namespace skein::inline SKEIN_ABI::comm::control
