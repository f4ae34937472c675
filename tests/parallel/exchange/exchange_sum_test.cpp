// SPDX-License-Identifier: Apache-2.0
// A sum that is given up while its messages are under way.
#include <skein/parallel/exchange/exchange_sum.hpp>

#include <catch2/catch.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <skein/comm/self/self_comm.hpp>

namespace sk = skein;

namespace exchange_sum_test {
/// What the destructors of requests have found.
struct Found {
  int under_way = 0, without_memory = 0;
};
/// A message that arrives when its request is destroyed, which waits.
class Message {
 public:
  Message() = default;
  Message(std::byte* data, Found& found) : data_(data), found_(&found) {}
  Message(Message&& o) noexcept : data_(std::exchange(o.data_, nullptr)), found_(o.found_) {}
  Message& operator=(Message&& o) noexcept {
    std::swap(data_, o.data_), std::swap(found_, o.found_);
    return *this;
  }
  ~Message() {
    if (!data_) return;
    ++found_->under_way;
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    unsigned char there[1];
    if (::mincore(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(data_) / page * page), 1, there) != 0)
      ++found_->without_memory;
    else *data_ = std::byte{1};
  }
  bool poll() const { return !data_; }
  void wait() { data_ = nullptr; }

 private:
  std::byte* data_ = nullptr;
  Found* found_ = nullptr;
};
struct TwoRanks : sk::SelfComm {
  explicit TwoRanks(Found& to) : found(&to) {}
  int size() const { return 2; }
  Message isend(std::span<const float>, int, int) { return {}; }
  Message irecv(std::span<float> to, int, int) { return {reinterpret_cast<std::byte*>(to.data()), *found}; }
  Found* found;
};
struct InARing : sk::parallel::AlgorithmBase {
  static constexpr std::string_view name = "in a ring";
  sk::plan::RingAllReduce table(int ranks, long count) const { return {.ranks = ranks, .count = count}; }
};
}  // namespace exchange_sum_test

TEST_CASE("what comes for a sum that is destroyed before it is done finds its memory", "[parallel]") {
  using namespace exchange_sum_test;
  Found found;
  TwoRanks comm(found);
  std::vector<float> values(std::size_t{20} << 20);  // half of them is more than an allocator keeps of what is freed
  sk::comm::Counts counts;
  {
    sk::parallel::detail::RunningSum<TwoRanks, float, InARing> sum;
    sum.start(comm, values, InARing{}, 1, counts);
    REQUIRE_FALSE(sum.poll());
  }
  CHECK(found.under_way == 1);
  CHECK(found.without_memory == 0);
}
