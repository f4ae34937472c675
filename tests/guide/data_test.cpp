// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of data. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include <skein/skein.hpp>

#include "../support/temporary_folder.hpp"

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

// [quote from_disk]
/// One file a sample, read when it is asked for: 784 bytes of an image, one of its class.
struct Folder {
  std::vector<std::filesystem::path> files;

  explicit Folder(const std::filesystem::path& path) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());  // the same order on every rank
  }
  std::int64_t size() const { return static_cast<std::int64_t>(files.size()); }
  sk::Extents sample_extents() const { return {3, {28, 28, 1}}; }
  sk::data::Target target() const { return sk::data::Target::labels(10); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const {
    std::ifstream file(files[static_cast<std::size_t>(i)], std::ios::binary);
    for (float& value : x) value = static_cast<float>(file.get()) / 255;
    label = file.get();
    if (!file) throw sk::Error(files[static_cast<std::size_t>(i)].string() + " is too short: it needs 785 bytes");
  }
};
// [end]
static_assert((sk::data::assert_dataset<Folder>(), true));

// [quote non_finite]
struct Measured : Sine {  // some values are missing: a layer of the network handles NaN
  sk::data::NonFinite non_finite() const { return sk::data::NonFinite::keep; }
};
// [end]
static_assert((sk::data::assert_dataset<Measured>(), true));

// [quote noise]
struct Noise {  // keyed by (epoch, sample): the same on any number of ranks
  template <class T> void operator()(std::span<T> sample, std::int64_t index, std::int64_t epoch) const {
    const std::uint64_t key = sk::random_key(1, static_cast<std::uint64_t>(epoch));
    for (std::size_t i = 0; i < sample.size(); ++i)
      sample[i] += T(0.1f * sk::random_normal(key, static_cast<std::uint64_t>(index), i));
  }
};
// [end]

TEST_CASE("sets and loaders", "[guide]") {
  // [quote sets]
  const auto digits = sk::data::synthetic_digits(600, sk::Seed{1});  // (28, 28, 1), labels 0 to 9
  const auto [train, validation] = sk::data::split(digits, 0.9, sk::Seed{2});
  const auto augmented = sk::data::map(train, Noise{});
  // [end]
  CHECK(train.size() == 540);
  CHECK(validation.size() == 60);

  long samples = 0;
  // [quote loader]
  sk::data::Loader<> loader{augmented, {.batch = 128, .seed = sk::Seed{3}, .ranks = 3, .rank = 1}};
  for (const sk::data::Batch<>& batch : loader.epoch(0)) {  // this rank's part of each global batch
    const auto images = batch.view<4>();                    // (count, 28, 28, 1), the loader's memory
    samples += images.extents[0];
    CHECK(batch.global_count <= 128);
  }
  // [end]
  CHECK(samples >= 179);
  CHECK(samples <= 181);
  CHECK(loader.steps() == 5);

  CHECK(sk::data::DatasetView(Measured{}).non_finite() == sk::data::NonFinite::keep);
  const Sine sine;
  sk::data::Loader<> own{sine, {.batch = 10, .shuffle = false}};
  for (const auto& batch : own.epoch(0)) {
    CHECK(batch.target(3)[0] == Approx(std::sin(batch.row(3)[0])));
    break;
  }
}

struct FolderNet : sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<16>, sk::nn::Relu, sk::nn::Linear<10>> {};

TEST_CASE("a set that is read from disk on demand trains as the same set in memory, over ranks too", "[guide]") {
  const support::TemporaryFolder folder;
  const auto digits = sk::data::synthetic_digits(70, sk::Seed{1});
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < digits.size(); ++i) {
    std::ofstream file(folder / ("digit_" + std::to_string(100 + i)), std::ios::binary);
    for (int j = 0; j < 784; ++j) bytes.push_back(digits.stored(i)[j]), file.put(static_cast<char>(bytes.back()));
    labels.push_back(digits.label(i)), file.put(static_cast<char>(labels.back()));
  }
  const sk::data::InMemory<std::uint8_t> in_memory({3, {28, 28, 1}}, bytes, labels, 10);
  const auto losses = [](const auto& set) {
    std::vector<double> of_rank_0;
    sk::spawn(2, [&](sk::ThreadComm& world) {
      sk::Model<FolderNet, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
      sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::DataParallel{world}};
      const auto history =
          trainer.fit(set, {.epochs = 2, .batch = 16, .validate = set, .record_steps = true, .progress = false, .threads = 1});
      if (world.rank() == 0) of_rank_0 = history.losses();
    });
    return of_rank_0;
  };
  // [quote folder]
  const Folder set{folder / ""};
  const auto [train, validation] = sk::data::split(set, 0.9, sk::Seed{2});  // as any other set
  // [end]
  CHECK(train.size() == 63);
  CHECK(validation.size() == 7);
  const std::vector<double> from_disk = losses(set), from_memory = losses(in_memory);
  REQUIRE(from_disk.size() == 10);
  for (std::size_t i = 0; i < from_disk.size(); ++i) CHECK(from_disk[i] == Approx(from_memory[i]).epsilon(1e-5));
}
