// SPDX-License-Identifier: Apache-2.0
// The sums of virtual shards: those of the tree, to the bit, by any number of workers.
#include <skein/nn/exec/virtual_shards.hpp>

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
constexpr long stored = 1300;  // several of the pieces that are summed at a time

/// An array a shard, with the tail. Values of all magnitudes, so that the order of a sum shows.
struct Shards {
  std::vector<std::vector<float>> arrays;
  explicit Shards(int count) : arrays(static_cast<std::size_t>(count)) {
    int k = 0;
    for (auto& a : arrays) {
      ++k;
      for (long i = 0; i < stored + sk::gradient_tail; ++i)
        a.push_back(static_cast<float>(std::sin(0.37 * static_cast<double>(i * k + k)) * std::pow(10.0, (i + 3 * k) % 7)));
    }
  }
  std::vector<float*> pointers() {
    std::vector<float*> p;
    for (auto& a : arrays) p.push_back(a.data());
    return p;
  }
  float at(int shard, std::size_t i) const { return arrays[static_cast<std::size_t>(shard)][i]; }
};

/// What sum() leaves in the arrays of the subtrees.
std::vector<std::vector<float>> summed(const sk::plan::VirtualShards& shards, int threads) {
  Shards data(shards.count());
  const nn::ShardSums<float> sums(shards, data.pointers(), stored);
  sk::Workers workers(threads);
  workers.run([&](sk::Worker& w) { sums.sum(w); });
  std::vector<std::vector<float>> result;
  for (const float* array : sums.subtree_sums()) result.emplace_back(array, array + stored + sk::gradient_tail);
  return result;
}
}  // namespace

TEST_CASE("the gradients of virtual shards are summed by the tree, by any number of workers", "[nn]") {
  const Shards given(4);
  for (int threads : {1, 2, 3}) {
    const auto sums = summed({4, 0, 4}, threads);
    REQUIRE(sums.size() == 1);
    bool order_shows = false;
    for (std::size_t i = 0; i < sums[0].size(); ++i) {
      const float left = given.at(0, i) + given.at(1, i), right = given.at(2, i) + given.at(3, i);
      REQUIRE(sums[0][i] == left + right);
      order_shows = order_shows || left + given.at(2, i) + given.at(3, i) != left + right;
    }
    CHECK(order_shows);
  }
}

TEST_CASE("a rank leaves an array for each subtree that it has whole", "[nn]") {
  const Shards given(3);
  const auto sums = summed({5, 0, 3}, 2);
  REQUIRE(sums.size() == 2);
  for (std::size_t i = 0; i < sums[0].size(); ++i) {
    REQUIRE(sums[0][i] == given.at(0, i) + given.at(1, i));
    REQUIRE(sums[1][i] == given.at(2, i));  // a leaf is as it was
  }
}

TEST_CASE("the sums of a batch lie behind the gradients of its shards", "[nn]") {
  Shards data(2);
  for (int k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < 3; ++i) data.arrays[static_cast<std::size_t>(k)][stored + i] = static_cast<float>(10 * k + 1) * 2;
  data.arrays[1][stored] = 7;
  const nn::LossSums sums = nn::ShardSums<float>({6, 2, 4}, data.pointers(), stored).batch_sums();
  CHECK((sums.loss == 9 && sums.weight == 24 && sums.correct == 24));
}
