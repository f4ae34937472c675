// SPDX-License-Identifier: Apache-2.0
// The shared-memory transport as a state machine: the transports of all ranks in one process, stepped in an order of the test's
// own.
#include "skein/comm/node/shared_transport.hpp"

#include <catch2/catch.hpp>

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "skein/comm/fold.hpp"

namespace sk = skein;
using sk::comm::Collective, sk::comm::CollectiveCall, sk::comm::SharedTransport;

namespace {
constexpr int ranks = 3;

CollectiveCall barrier() { return {}; }
CollectiveCall sum(std::vector<float>& data) {
  CollectiveCall o;
  o.signature = {Collective::AllReduce, 1, 1, 0, 0, sizeof(float), data.size(), 0};
  o.send = o.recv = data.data();
  o.fold = &sk::comm::fold<float, sk::Sum>;
  return o;
}

/// Nobody else has to hear.
struct Alone final : sk::comm::NodeMeeting {
  void tell(sk::comm::SharedFileText&) override {}
  bool all(bool good) override { return good; }
};

/// The ranks of one segment, all of them here.
struct Ranks {
  explicit Ranks(std::uint64_t chunks, bool asks = false) {
    REQUIRE(segment.create(alone, 0, ranks));
    for (int r = 0; r < ranks; ++r) transports.emplace_back(std::make_unique<SharedTransport>(segment, r, ranks, chunks, asks));
  }
  void set(int which, std::uint64_t chunks) {
    for (int r = 0; r < ranks; ++r) segment.line(r).counter[which] = static_cast<std::uint32_t>(chunks);
  }
  bool step(int r) { return !transports[static_cast<std::size_t>(r)]->done() && transports[static_cast<std::size_t>(r)]->step(); }
  /// One call of all ranks, in which rank 2 does all that it can before each step of another.
  void run(std::vector<CollectiveCall>& calls) {
    for (int r = 0; r < ranks; ++r) transports[static_cast<std::size_t>(r)]->begin(calls[static_cast<std::size_t>(r)], call);
    ++call;
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < ranks; ++r) {
        while (step(2)) moved = true;
        moved = step(r) || moved;
      }
    }
    for (const auto& t : transports) REQUIRE(t->done());
  }
  Alone alone;
  sk::comm::Segment segment;
  std::vector<std::unique_ptr<SharedTransport>> transports;
  std::uint64_t call = 0;
};

void check_sums(Ranks& all) {
  std::vector<std::vector<float>> data;
  for (int r = 0; r < ranks; ++r) data.emplace_back(100000, static_cast<float>(r + 1));
  std::vector<CollectiveCall> calls;
  for (std::vector<float>& d : data) calls.push_back(sum(d));
  all.run(calls);
  for (const std::vector<float>& d : data) CHECK(d == std::vector<float>(100000, 6.0f));
}
}  // namespace

TEST_CASE("a counter that long stood still is not taken for one that is ahead") {
  const std::uint64_t before = GENERATE(1000u, std::uint64_t{1} << 30, (std::uint64_t{1} << 31) - 256,
                                        (std::uint64_t{1} << 31) + 16, std::uint64_t{3} << 30, (std::uint64_t{1} << 32) - 256,
                                        std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + (std::uint64_t{1} << 31) + 16);
  Ranks all(before);  // so many chunks of barriers have passed, and none was folded
  all.set(SharedTransport::In, before);
  all.set(SharedTransport::Taken, before);
  std::vector<CollectiveCall> barriers(ranks, barrier());
  all.run(barriers);
  check_sums(all);
}

TEST_CASE("calls pass while all counters wrap") {
  const std::uint64_t before = (std::uint64_t{1} << 32) - 6;
  Ranks all(before);
  for (const int which : {SharedTransport::In, SharedTransport::Folded, SharedTransport::Taken}) all.set(which, before);
  std::vector<CollectiveCall> barriers(ranks, barrier());
  for (int i = 0; i < 10; ++i) {
    check_sums(all);
    all.run(barriers);
  }
}

TEST_CASE("sums are the same whether or not a transport asks for lines before it reads") {
  Ranks all(0, GENERATE(false, true));
  std::vector<std::vector<float>> data;
  for (int r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < 300001; ++i) {
      if (i == 0) data.emplace_back();
      data.back().push_back(static_cast<float>((i * 7 + static_cast<std::size_t>(r) * 13) % 101));
    }
  std::vector<float> wanted(data[0]);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = wanted[i] + data[1][i] + data[2][i];
  std::vector<CollectiveCall> calls;
  for (std::vector<float>& d : data) calls.push_back(sum(d));
  const std::vector<float> first = data[0];
  SECTION("all-reduce") {
    all.run(calls);
    for (const std::vector<float>& d : data) CHECK(d == wanted);
  }
  SECTION("reduce") {
    for (CollectiveCall& o : calls) o.signature.kind = Collective::Reduce, o.signature.root = 1;
    all.run(calls);
    CHECK(data[1] == wanted);
    CHECK(data[0] == first);
  }
}

TEST_CASE("sums in shared pages are those of slots, before and after each other, while counters wrap") {
  const std::uint64_t before = GENERATE(0u, (std::uint64_t{1} << 31) - 3, (std::uint64_t{1} << 32) - 3);
  Ranks all(before, GENERATE(false, true));
  for (const int which : {SharedTransport::In, SharedTransport::Folded, SharedTransport::Taken}) all.set(which, before);
  constexpr std::size_t count = 30001;
  sk::comm::SharedFileText text = "";
  std::vector<std::shared_ptr<sk::comm::NodePages>> pages;
  for (int r = 0; r < ranks; ++r) pages.push_back(std::make_shared<sk::comm::NodePages>(r, ranks, 4 * (count + 1)));
  REQUIRE(pages[0]->make(text, sk::comm::OpenBy::descriptor));
  for (int r = 0; r < ranks; ++r) {
    REQUIRE(pages[static_cast<std::size_t>(r)]->map(text));
    all.transports[static_cast<std::size_t>(r)]->add(pages[static_cast<std::size_t>(r)]);
  }
  sk::comm::forget_shared_file(text);
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<std::vector<float>> slots;
    std::vector<CollectiveCall> calls, in_place;
    for (int r = 0; r < ranks; ++r) {
      slots.emplace_back(count);
      float* const own = reinterpret_cast<float*>(pages[static_cast<std::size_t>(r)]->own()) + turn % 2;
      for (std::size_t i = 0; i < count; ++i)
        own[i] = slots.back()[i] = 0.1f * static_cast<float>((i * 7 + static_cast<std::size_t>(r) * 13) % 101);
      calls.push_back(sum(slots.back()));
      in_place.push_back(calls.back());
      CollectiveCall& o = in_place.back();
      o.send = o.recv = own;
      const SharedTransport& t = *all.transports[static_cast<std::size_t>(r)];
      o.signature.shared_at = t.shared_at(o);
      REQUIRE(o.signature.shared_at == static_cast<std::uint64_t>(64 + 4 * (turn % 2)));
      REQUIRE(t.shared_at(calls.back()) == 0);
    }
    all.run(turn % 2 ? calls : in_place);
    all.run(turn % 2 ? in_place : calls);
    for (std::size_t r = 0; r < ranks; ++r) CHECK(std::memcmp(in_place[r].recv, slots[r].data(), 4 * count) == 0);
    check_sums(all);
  }
}

TEST_CASE("calls that use the short ring and those that use the long one follow each other") {
  Ranks all(0);
  constexpr std::size_t piece = 90000;  // several chunks
  for (int turn = 0; turn < 6; ++turn) {
    std::vector<std::vector<float>> from, into;
    std::vector<CollectiveCall> calls;
    for (int r = 0; r < ranks; ++r) {
      from.emplace_back(piece * ranks, static_cast<float>(r + 1 + turn));
      into.emplace_back(piece);
      CollectiveCall o = sum(from.back());
      o.signature.kind = Collective::ReduceScatter;
      o.signature.count = piece;
      o.recv = into.back().data();
      calls.push_back(o);
    }
    all.run(calls);
    for (const std::vector<float>& d : into) CHECK(d == std::vector<float>(piece, static_cast<float>(6 + 3 * turn)));
    if (turn % 2) check_sums(all);
    if (turn % 3 == 0) {
      std::vector<CollectiveCall> barriers(ranks, barrier());
      all.run(barriers);
    }
  }
}

TEST_CASE("values of any size are copied, those too that are larger than a slot") {
  Ranks all(0);
  const std::size_t element = GENERATE(1, 12, 4800, 300'001), count = GENERATE(1, 7);
  const Collective kind = GENERATE(Collective::Broadcast, Collective::AllGather, Collective::AllToAll);
  const auto byte = [](std::size_t rank, std::size_t i) { return static_cast<char>(rank * 31 + i % 251 + i / 4096); };
  const std::size_t piece = element * count, gives = kind == Collective::AllToAll ? ranks * piece : piece;
  std::vector<std::vector<char>> from, into(ranks, std::vector<char>(kind == Collective::Broadcast ? piece : ranks * piece));
  std::vector<CollectiveCall> calls;
  for (std::size_t r = 0; r < ranks; ++r) {
    from.emplace_back(gives);
    for (std::size_t i = 0; i < gives; ++i) from.back()[i] = byte(r, i);
    CollectiveCall o;
    o.signature = {kind, 0, 0, 0, kind == Collective::Broadcast ? 1 : 0, element, count, 0};
    o.send = from.back().data();
    o.recv = into[r].data();
    calls.push_back(o);
  }
  const std::vector<std::vector<char>> given = from;
  all.run(calls);
  const auto part = [&](std::size_t r, std::size_t q) {  // what rank r has of rank q
    return std::string_view(into[r].data() + (kind == Collective::Broadcast ? 0 : q * piece), piece);
  };
  const auto wanted = [&](std::size_t r, std::size_t q) {
    return std::string_view(from[q].data() + (kind == Collective::AllToAll ? r * piece : 0), piece);
  };
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t q = 0; q < ranks; ++q) {
      if (kind == Collective::Broadcast && (q != 1 || r == 1)) continue;
      CHECK((part(r, q) == wanted(r, q)));
    }
  CHECK((from == given));
}

TEST_CASE("a rank that does its work and leaves while it is looked for is not missed") {
  Ranks all(0);
  std::vector<CollectiveCall> barriers(ranks, barrier());
  for (std::size_t r = 0; r < ranks; ++r) all.transports[r]->begin(barriers[r], 0);
  while (all.step(0)) {}
  CHECK(all.transports[0]->departed_text([](int) { return false; }).empty());
  CHECK(all.transports[0]->departed_text([](int r) { return r == 2; }) ==
        "barrier (call 0): rank 2 returned and will not arrive");
  const std::string text = all.transports[0]->departed_text([&](int r) {  // it has worked before it says that it has left
    while (all.step(r)) {}
    return true;
  });
  CHECK(text.empty());
}
