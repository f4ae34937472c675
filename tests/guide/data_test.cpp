// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of data. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <cmath>
#include <span>
#include <vector>

#include <skein/skein.hpp>

namespace sk = skein;

// [quote own]
struct Sine {
  std::int64_t size() const { return 1000; }
  sk::Extents sample_extents() const { return {1, {1}}; }
  sk::data::Target target() const { return sk::data::Target::vector(1); }
  void gather(sk::data::Indices indices, float* x, long pitch) const {
    for (std::size_t i = 0; i < indices.size(); ++i) x[static_cast<long>(i) * pitch] = at(indices[i]);
  }
  void targets(sk::data::Indices indices, float* y, long pitch) const {
    for (std::size_t i = 0; i < indices.size(); ++i) y[static_cast<long>(i) * pitch] = std::sin(at(indices[i]));
  }

 private:
  static float at(std::int64_t i) { return 0.006f * static_cast<float>(i); }
};
// [end]
static_assert((sk::data::assert_dataset<Sine>(), true));

// [quote noise]
struct Noise {                                                     // keyed by (epoch, sample): the same on any number of ranks
  template <class T> void operator()(std::span<T> sample, std::int64_t index, std::int64_t epoch) const {
    const std::uint64_t key = sk::random_key(1, static_cast<std::uint64_t>(epoch));
    for (std::size_t i = 0; i < sample.size(); ++i)
      sample[i] += T(0.1f * sk::random_normal(key, static_cast<std::uint64_t>(index), i));
  }
};
// [end]

TEST_CASE("sets and loaders", "[guide]") {
  // [quote sets]
  const auto digits = sk::data::synthetic_digits(600, sk::Seed{1});               // (28, 28, 1), labels 0 to 9
  const auto [train, validation] = sk::data::split(digits, 0.9, sk::Seed{2});
  const auto augmented = sk::data::map(train, Noise{});
  // [end]
  CHECK(train.size() == 540);
  CHECK(validation.size() == 60);

  long samples = 0;
  // [quote loader]
  sk::data::Loader<> loader{augmented, {.batch = 128, .seed = sk::Seed{3}, .ranks = 3, .rank = 1}};
  for (const sk::data::Batch<>& batch : loader.epoch(0)) {         // this rank's part of each global batch
    const auto images = batch.view<4>();                           // (count, 28, 28, 1), the loader's memory
    samples += images.extents[0];
    CHECK(batch.global_count <= 128);
  }
  // [end]
  CHECK(samples >= 179);
  CHECK(samples <= 181);
  CHECK(loader.steps() == 5);

  const Sine sine;
  sk::data::Loader<> own{sine, {.batch = 10, .shuffle = false}};
  for (const auto& batch : own.epoch(0)) {
    CHECK(batch.target(3)[0] == Approx(std::sin(batch.row(3)[0])));
    break;
  }
}
