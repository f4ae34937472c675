// SPDX-License-Identifier: Apache-2.0
// CIFAR-10's binary version: planes become pixels; what is wrong with a file is said. The shared subset has the published facts.
#include <skein/data/cifar10.hpp>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "../support/data_sets.hpp"
#include "support.hpp"

namespace sk = skein;
using data_test::Bytes;

namespace {
/// A record whose pixel k has the values k, k + 1, k + 2 (mod 256).
void add_record(Bytes& to, unsigned char label) {
  to.push_back(label);
  for (int c = 0; c < 3; ++c)
    for (int k = 0; k < 1024; ++k) to.push_back(static_cast<unsigned char>(k + c));
}
}  // namespace

TEST_CASE("a CIFAR-10 file is read as pixels, one file behind the other", "[data][cifar10]") {
  const data_test::Folder folder;
  Bytes two, one;
  add_record(two, 3), add_record(two, 9), add_record(one, 0);
  const auto set = sk::data::read_cifar10({folder.write("a.bin", two), folder.write("b.bin", one)});
  REQUIRE(set.size() == 3);
  CHECK(set.sample_extents() == sk::Extents{3, {32, 32, 3}});
  CHECK((set.label(0) == 3 && set.label(1) == 9 && set.label(2) == 0));
  for (const int k : {0, 5, 31, 32, 255, 1023})
    for (int c = 0; c < 3; ++c) CHECK(set.stored(2)[3 * k + c] == static_cast<unsigned char>(k + c));
}

TEST_CASE("the full set is five files and one for tests, and comes before the subset", "[data][cifar10]") {
  const data_test::Folder folder;
  for (int file = 1; file <= 5; ++file) {
    Bytes records;
    for (int i = 0; i < file; ++i) add_record(records, static_cast<unsigned char>(file));
    (void)folder.write("data_batch_" + std::to_string(file) + ".bin", records);
  }
  Bytes test, other;
  add_record(test, 7), add_record(test, 8), add_record(other, 0);
  (void)folder.write("train_subset_10000.bin", other);
  (void)folder.write("test_subset_2000.bin", other);
  CHECK_THROWS_WITH(sk::data::cifar10(folder.path()), Catch::Contains("test_batch.bin"));
  (void)folder.write("test_batch.bin", test);
  const auto sets = sk::data::cifar10(folder.path());
  CHECK(sets.source == "CIFAR-10 from " + folder.path());
  REQUIRE((sets.train.size() == 15 && sets.test.size() == 2));
  for (int file = 1, i = 0; file <= 5; ++file)
    for (int k = 0; k < file; ++k, ++i) CHECK(sets.train.label(i) == file);
  CHECK((sets.test.label(0) == 7 && sets.test.label(1) == 8));
}

TEST_CASE("a faulty CIFAR-10 file is refused with the place", "[data][cifar10]") {
  using Catch::Contains;
  const data_test::Folder folder;
  Bytes good;
  add_record(good, 1);
  Bytes cut = good, label = good;
  cut.pop_back();
  add_record(label, 10);
  CHECK_THROWS_WITH(sk::data::read_cifar10({folder.write("cut.bin", cut)}), Contains("3072 bytes, which are not whole records"));
  CHECK_THROWS_WITH(sk::data::read_cifar10({folder.write("empty.bin", Bytes{})}), Contains("it has 0 bytes"));
  CHECK_THROWS_WITH(sk::data::read_cifar10({folder.write("label.bin", label)}),
                    Contains("label 10 is not below 10") && Contains("3073"));
  CHECK_THROWS_WITH(sk::data::read_cifar10({folder.write("long.bin", good)}, 3000), Contains("limit of 3000 bytes"));
  CHECK_THROWS_AS(sk::data::read_cifar10({folder.path() + "/none.bin"}), sk::FileError);
  CHECK_THROWS_WITH(sk::data::read_cifar10({}), Contains("no file is named"));
  REQUIRE(::mkfifo((folder.path() + "/pipe").c_str(), 0600) == 0);
  CHECK_THROWS_AS(sk::data::read_cifar10({folder.path() + "/pipe"}), sk::FileError);
}

TEST_CASE("a folder without CIFAR-10 is refused with its place and what it should hold", "[data][cifar10]") {
  const data_test::Folder folder;
  const std::string empty = folder.path(), here = std::filesystem::current_path().string();
  const data_test::Thrown named = data_test::thrown([&] { sk::data::cifar10(empty); });
  CHECK(named.path == empty);
  CHECK(named.says(
      "neither data_batch_1.bin, ... and test_batch.bin nor train_subset_10000.bin and test_subset_2000.bin are there"));
  CHECK(named.says("Looked in: " + empty + ". Name the folder that holds these files"));
  CHECK_FALSE(named.says("SKEIN_DATA"));  // which is not looked at where a folder is named
  const data_test::Thrown typo = data_test::thrown([&] { sk::data::cifar10("no-such-folder"); });
  CHECK(typo.says("Looked in: " + here + "/no-such-folder, which does not exist. Name the folder"));
  CHECK(data_test::thrown([&] { sk::data::cifar10(folder.write("file", Bytes{1})); }).says("/file, which is no folder."));
}

TEST_CASE("the subset of CIFAR-10 has the published facts", "[data][cifar10]") {
  const auto subset = support::cifar10_subset();
  if (!subset) return;
  const auto& sets = *subset;
  REQUIRE((sets.train.size() == 10'000 && sets.test.size() == 2'000));
  CHECK(sets.source.find("a subset of CIFAR-10") == 0);
  const int train[] = {5, 6, 6, 3, 9, 0, 3, 0, 2, 7}, test[] = {0, 8, 2, 1, 9, 4, 7, 2, 1, 9};
  std::vector<int> seen(10, 0);
  for (int i = 0; i < 10; ++i) CHECK((sets.train.label(i) == train[i] && sets.test.label(i) == test[i]));
  double sums[3] = {};
  for (int i = 0; i < 10'000; ++i) {
    ++seen[static_cast<std::size_t>(sets.train.label(i))];
    for (int k = 0; k < 3072; ++k) sums[k % 3] += sets.train.stored(i)[k];
  }
  CHECK(seen == std::vector<int>(10, 1000));
  const double means[] = {0.491753, 0.482979, 0.447812};
  for (int c = 0; c < 3; ++c) CHECK(sums[c] / (255.0 * 1024 * 10'000) == Approx(means[c]).margin(1e-6).epsilon(0));
  CHECK((sets.train.stored(0)[0] == 31 && sets.train.stored(0)[3] == 31 && sets.train.stored(0)[6] == 32));
}
