// SPDX-License-Identifier: Apache-2.0
// The bodies of control_comm.hpp.
#pragma once
#include "control_comm.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE ControlEngine::ControlEngine(std::shared_ptr<control::Client> client, std::uint32_t group, int rank, RankNames ranks)
    : client_(std::move(client)), group_(group), names_(std::move(ranks)), rank_(rank), size_(names_.size()), pointers_(size_) {}

SKEIN_INLINE void ControlEngine::run(const CollectiveCall& o) {
  std::string mine(reinterpret_cast<const char*>(&o.signature), sizeof o.signature);
  if (sends(o, rank_)) mine.append(o.from(), o.sent_bytes(rank_, size_));
  const std::uint64_t call = calls_++;
  const std::string answer = client_->exchange(group_, call, std::move(mine));
  std::string_view rest = answer;
  const std::string_view ticket = control::take_part(rest);
  if (ticket.size() != sizeof ticket_) throw CommError("the coordinator's answer is cut off");
  std::memcpy(&ticket_, ticket.data(), sizeof ticket_);
  std::vector<CollectiveCall> posts(static_cast<std::size_t>(size_), o);
  std::vector<std::size_t> values(posts.size());  // bytes behind each rank's signature
  bool same = true;
  for (std::size_t r = 0; r < posts.size(); ++r) {
    CollectiveCall& p = posts[r];
    const std::string_view part = control::take_part(rest);
    if (part.size() < sizeof p.signature) throw CommError("the coordinator's answer is cut off");
    std::memcpy(&p.signature, part.data(), sizeof p.signature);
    same = same && p.signature == o.signature;
    p.send = part.data() + sizeof p.signature;
    values[r] = part.size() - sizeof p.signature;
  }
  if (!same) end_all(mismatch_text(call, names_, [&](int r) { return posts[static_cast<std::size_t>(r)].signature; }));
  check_values(o, call, values);
  work(o, posts);
}

SKEIN_INLINE Ticket ControlEngine::start(const CollectiveCall& o) {
  run(o);
  return {};
}

SKEIN_INLINE void ControlEngine::end_all(const std::string& text) {
  fail(text);
  check();
  throw CommError(text);
}

SKEIN_INLINE void ControlEngine::check_values(const CollectiveCall& o, std::uint64_t call,
                                              const std::vector<std::size_t>& values) {
  for (int r = 0; r < size_; ++r) {
    const std::size_t bytes = values[static_cast<std::size_t>(r)], wanted = sends(o, r) ? o.sent_bytes(r, size_) : 0;
    if (bytes != wanted)
      end_all(skein::text("{} (call {}): {} gave {} bytes of values, and its call has {}: it is no rank of this program",
                          describe(o.signature, names_), call, names_.name(r), bytes, wanted));
  }
}

SKEIN_INLINE bool ControlEngine::sends(const CollectiveCall& o, int rank) {
  return o.signature.kind != Collective::Broadcast || o.signature.root == rank;
}

SKEIN_INLINE void ControlEngine::work(const CollectiveCall& o, const std::vector<CollectiveCall>& posts) {
  const Signature& s = o.signature;
  if (s.kind == Collective::AllReduce || (s.kind == Collective::Reduce && s.root == rank_)) {
    // The parts of an answer lie at any address: aligned copies.
    std::vector<std::vector<Block>> aligned(posts.size());
    for (std::size_t r = 0; r < posts.size(); ++r) {
      aligned[r].resize(o.bytes(s.count) / sizeof(Block) + 1);
      std::memcpy(aligned[r].data(), posts[r].send, o.bytes(s.count));
      pointers_.from[r] = aligned[r].data();
    }
    pointers_.to[0] = o.recv;
    if (s.count) o.fold(o.functor, pointers_.to.data(), 1, pointers_.from.data(), size_, s.count);
  } else if (s.kind == Collective::ReduceScatter) {
    const Piece own = o.piece(rank_);
    std::vector<std::vector<Block>> aligned(posts.size());
    for (std::size_t r = 0; r < posts.size(); ++r) {
      aligned[r].resize(o.bytes(own.count) / sizeof(Block) + 1);
      std::memcpy(aligned[r].data(), posts[r].from() + o.bytes(own.offset), o.bytes(own.count));
      pointers_.from[r] = aligned[r].data();
    }
    pointers_.to[0] = o.recv;
    if (own.count) o.fold(o.functor, pointers_.to.data(), 1, pointers_.from.data(), size_, own.count);
  } else if (s.kind != Collective::Reduce) {
    work_direct(
        rank_, size_, [&](int r) -> const CollectiveCall& { return posts[static_cast<std::size_t>(r)]; }, pointers_);
  }
}

SKEIN_INLINE std::uint32_t group_number(std::uint64_t ticket, const std::vector<SplitKey>& keys, int color) {
  std::vector<int> colors;
  for (const SplitKey& k : keys) colors.push_back(k.color);
  std::sort(colors.begin(), colors.end());
  colors.erase(std::unique(colors.begin(), colors.end()), colors.end());
  if (colors.size() > 1024)
    throw ArgumentError(skein::text(
        "split: there are {} colours, and a split over the coordinator makes at most 1024 parts: split twice", colors.size()));
  const auto place = static_cast<std::uint64_t>(std::lower_bound(colors.begin(), colors.end(), color) - colors.begin());
  return static_cast<std::uint32_t>((1 + ticket % ((1u << 22) - 1)) * 1024 + place);
}

}  // namespace skein::inline SKEIN_ABI::comm

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE std::string MeetOptions::from_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

SKEIN_INLINE ControlComm ControlComm::from_address(const std::string& address, int rank, int size, const MeetOptions& options) {
  return ControlComm(comm::control::meet_at(address, place(rank, size, options)));
}

SKEIN_INLINE ControlComm ControlComm::from_file(const std::string& path, int rank, int size, const MeetOptions& options) {
  return ControlComm(comm::control::meet_in_file(path, place(rank, size, options)));
}

SKEIN_INLINE ControlComm ControlComm::from_environment(MeetOptions options, const comm::launch::Lookup& lookup) {
  const comm::control::RendezvousAddress m = comm::control::rendezvous_address(lookup);
  options.job += m.job;
  return ControlComm(comm::control::meet(m, place(m.rank, m.size, options)));
}

SKEIN_INLINE ControlComm ControlComm::from_launcher(MeetOptions options) {
  const comm::launch::LaunchEnvironment e = comm::launch::launch_environment(comm::launch::process_environment());
  const bool meets = std::getenv("MASTER_ADDR") != nullptr;  // who sets it does not mean a world of one
  if (meets || e.is_launched()) return from_environment(std::move(options));
  const comm::launch::Lookup alone = [](std::string_view variable) -> std::optional<std::string> {
    return variable == "RANK"         ? std::optional<std::string>("0")
           : variable == "WORLD_SIZE" ? std::optional<std::string>("1")
                                      : std::nullopt;
  };
  return from_environment(std::move(options), alone);
}

SKEIN_INLINE ControlComm& ControlComm::operator=(ControlComm&& o) noexcept {
  std::swap(engine_, o.engine_);
  std::swap(uncaught_, o.uncaught_);
  return *this;
}

SKEIN_INLINE ControlComm::~ControlComm() {
  if (!engine_ || engine_->client().failed()) return;
  const std::string why = detail::fault_leaves(uncaught_)
                              ? engine_->rank_names().name(rank()) + " failed: an exception left the scope of its communicator"
                              : "";
  if (engine_->group() != 0) engine_->leave(why);  // the whole lives
  else if (!why.empty()) engine_->fail(why);
}

SKEIN_INLINE ControlComm ControlComm::split(int color, int key) {
  comm::check_color(color);
  const std::vector<comm::SplitKey> keys = this->all_gather(comm::SplitKey{color, key, engine_->client().rank()});
  const std::uint64_t ticket = engine_->ticket();
  const std::uint32_t group = comm::group_number(ticket, keys, color);
  std::vector<comm::SplitKey> mine;
  for (const comm::SplitKey& w : keys)
    if (w.color == color) mine.push_back(w);
  std::stable_sort(mine.begin(), mine.end(), [](const comm::SplitKey& a, const comm::SplitKey& b) { return a.key < b.key; });
  std::vector<int> members;
  int rank = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    members.push_back(mine[i].rank);
    if (mine[i].rank == engine_->client().rank()) rank = static_cast<int>(i);
  }
  engine_->client().open(group, members);
  return ControlComm(engine_->shared_client(), group, rank, comm::RankNames(std::move(members)));
}

SKEIN_INLINE ControlComm::ControlComm(std::unique_ptr<comm::control::Client> client) {
  const int rank = client->rank(), size = client->size();
  engine_ = std::make_unique<engine_type>(std::shared_ptr<comm::control::Client>(std::move(client)), 0, rank, size);
}

SKEIN_INLINE ControlComm::ControlComm(std::shared_ptr<comm::control::Client> client, std::uint32_t group, int rank,
                                      comm::RankNames ranks)
    : engine_(std::make_unique<engine_type>(std::move(client), group, rank, std::move(ranks))) {}

SKEIN_INLINE comm::control::RankPlace ControlComm::place(int rank, int size, const MeetOptions& o) {
  if (!o.secret.empty() && o.secret.size() < 16)
    throw ArgumentError(
        skein::text("the job's secret (MeetOptions::secret, SKEIN_JOB_SECRET) has {} characters: give 16 or more, as openssl "
                    "rand -hex 16 makes them",
                    o.secret.size()));
  return {rank, size, comm::control::key_of(o.job, o.secret), o.deadline};
}

}  // namespace skein::inline SKEIN_ABI
