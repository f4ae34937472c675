// SPDX-License-Identifier: Apache-2.0
// The bodies of rendezvous.hpp.
#pragma once
#include "rendezvous.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE void check_place(const RankPlace& p) {
  if (p.size < 1 || p.rank < 0 || p.rank >= p.size)
    throw ArgumentError("there is no rank " + std::to_string(p.rank) + " among " + std::to_string(p.size) +
                        ": ranks count from 0");
}

}  // namespace skein::inline SKEIN_ABI::comm::control

namespace skein::inline SKEIN_ABI::comm::control::detail {

SKEIN_INLINE RankAcceptor::RankAcceptor(const Listener& listener, const RankPlace& place, std::string where)
    : listener_(&listener), place_(place), where_(std::move(where)), ranks_(static_cast<std::size_t>(place.size)) {}

SKEIN_INLINE std::vector<Descriptor> RankAcceptor::run() {
  const double end = now() + place_.deadline;
  while (came_ < place_.size - 1) {
    if (now() >= end) end_all(missing_text());
    wait(end);
    admit();
    for (std::size_t i = 0; i < pending_.size();) {
      if (finished(pending_[i])) pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
      else ++i;
    }
  }
  for (int r = 1; r < place_.size; ++r) tell(ranks_[static_cast<std::size_t>(r)], {Kind::Welcome, 0, place_.key, 0, {}});
  return std::move(ranks_);
}

SKEIN_INLINE void RankAcceptor::wait(double end) {
  std::vector<pollfd> polled{{listener_->get(), POLLIN, 0}};
  for (const PendingPeer& g : pending_) polled.push_back({g.fd.get(), POLLIN, 0});
  (void)::poll(polled.data(), polled.size(), static_cast<int>(1000 * std::min(0.2, std::max(0.001, end - now()))));
}

SKEIN_INLINE void RankAcceptor::admit() {
  while (pending_.size() < 2 * ranks_.size() + 64) {
    Descriptor d = listener_->accept();
    if (!d) return;
    pending_.emplace_back();
    pending_.back().fd = std::move(d);
    pending_.back().since = now();
  }
}

SKEIN_INLINE bool RankAcceptor::finished(PendingPeer& g) {
  char bytes[512];
  const ssize_t n = ::recv(g.fd.get(), bytes, sizeof bytes, 0);
  if (n > 0) g.reader.add(bytes, static_cast<std::size_t>(n));
  else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return true;
  std::optional<Hello> hello;
  try {
    const std::optional<Frame> f = g.reader.next();
    if (!f) return now() - g.since > 5;
    if (f->kind == Kind::Hello) hello = unpack_hello(f->payload);
  } catch (const CommError& e) {
    tell(g.fd, {Kind::Fail, 0, 0, 0, std::string("refused: ") + e.what()});
    return true;
  }
  if (!hello) return true;
  if (hello->key != place_.key) {
    tell(g.fd, {Kind::Fail, 0, 0, 0, "refused: " + where_ + " belongs to another job"});
    return true;
  }
  const std::string who = "rank " + std::to_string(hello->rank);
  if (hello->size != place_.size) {
    tell(g.fd, {Kind::Heard, 0, place_.key, 0, {}});
    late_ = std::move(g.fd);
    end_all(who + " believes in " + std::to_string(hello->size) + " ranks, rank 0 in " + std::to_string(place_.size) +
            ": start all with the same number");
  }
  if (hello->rank < 1 || hello->rank >= place_.size || ranks_[static_cast<std::size_t>(hello->rank)]) {
    tell(g.fd, {Kind::Heard, 0, place_.key, 0, {}});
    late_ = std::move(g.fd);
    end_all("two processes say that they are " + who + " of " + std::to_string(place_.size) +
            ": each needs a number of its own, from 0");
  }
  tell(g.fd, {Kind::Heard, 0, place_.key, 0, {}});
  ranks_[static_cast<std::size_t>(hello->rank)] = std::move(g.fd);
  ++came_;
  return true;
}

SKEIN_INLINE std::string RankAcceptor::missing_text() const {
  return ranks_text(place_.size, [&](int r) { return r > 0 && !ranks_[static_cast<std::size_t>(r)]; }) + " did not arrive at " +
         where_ + " within " + seconds_text(place_.deadline);
}

SKEIN_INLINE void RankAcceptor::end_all(const std::string& text) {
  for (const Descriptor& d : ranks_)
    if (d) tell(d, {Kind::Fail, 0, 0, 0, text});
  if (late_) tell(late_, {Kind::Fail, 0, 0, 0, text});
  throw CommError(text);
}

SKEIN_INLINE std::optional<Frame> read_frame(const Descriptor& d, FrameReader& reader, double seconds) {
  const double end = now() + seconds;
  while (true) {
    if (std::optional<Frame> f = reader.next()) return f;
    const double left = end - now();
    if (left <= 0) return std::nullopt;
    pollfd p{d.get(), POLLIN, 0};
    (void)::poll(&p, 1, static_cast<int>(1000 * std::min(left, 1.0)) + 1);
    char bytes[4096];
    const ssize_t n = ::recv(d.get(), bytes, sizeof bytes, 0);
    if (n > 0) reader.add(bytes, static_cast<std::size_t>(n));
    else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return std::nullopt;
  }
}

}  // namespace skein::inline SKEIN_ABI::comm::control::detail

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE std::unique_ptr<Client> serve_at(const Listener& listener, const RankPlace& place, const std::string& where) {
  check_place(place);
  std::vector<Descriptor> ranks = detail::RankAcceptor(listener, place, where).run();
  auto [mine, coordinators] = connected_pair();
  ranks[0] = std::move(coordinators);
  return std::make_unique<Client>(std::move(mine), 0, place.size, place.deadline, std::make_unique<Server>(std::move(ranks)));
}

SKEIN_INLINE std::unique_ptr<Client> meet_at(const std::string& address, const RankPlace& place) {
  check_place(place);
  const Address a = parse_address(address);
  if (place.rank == 0) return serve_at(Listener(a), place, a.text());
  return join_at([&](std::string&) { return std::vector<Try>{{a, place.key}}; }, place, a.text());
}

}  // namespace skein::inline SKEIN_ABI::comm::control
