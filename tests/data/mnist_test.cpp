// SPDX-License-Identifier: Apache-2.0
#include <skein/data/mnist.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include <skein/data/mnist_or_synthetic.hpp>
#include <skein/data/moments.hpp>

#include "../support/data_sets.hpp"
#include "support.hpp"
#include <catch2/catch.hpp>

namespace sk = skein;
using namespace data_test;

namespace {
struct Facts {
  std::vector<int> train_labels, test_labels;
  double train_mean, train_deviation, test_mean, test_deviation;
  std::vector<int> train_counts, test_counts;
};

void check_set(const sk::data::InMemory<std::uint8_t>& set, std::int64_t size, const std::vector<int>& first, double mean,
               double deviation, const std::vector<int>& counts) {
  REQUIRE(set.size() == size);
  CHECK(set.sample_extents() == sk::Extents{3, {28, 28, 1}});
  CHECK(set.target() == sk::data::Target::labels(10));
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(set.label(static_cast<std::int64_t>(i)) == first[i]);
  std::vector<int> seen(10, 0);
  for (std::int64_t i = 0; i < size; ++i) ++seen[static_cast<std::size_t>(set.label(i))];
  CHECK(seen == counts);
  const auto m = sk::data::moments(set.normalize(0, 1));
  CHECK(m.mean == Approx(mean).margin(1e-6).epsilon(0));
  CHECK(m.deviation == Approx(deviation).margin(1e-6).epsilon(0));
}

template <class Load> void check_facts(const char* name, Load load, const Facts& facts) {
  if (support::lacks_images(name)) return;
  auto [train, test] = load();
  check_set(train, 60000, facts.train_labels, facts.train_mean, facts.train_deviation, facts.train_counts);
  check_set(test, 10000, facts.test_labels, facts.test_mean, facts.test_deviation, facts.test_counts);
  const auto normal = sk::data::moments(train);
  CHECK(std::abs(normal.mean) < 2e-3);
  CHECK(normal.deviation == Approx(1).margin(2e-3));
}

/// SKEIN_DATA for the length of a test.
class DataFolder {
 public:
  explicit DataFolder(const std::string& value) {
    if (const char* old = std::getenv("SKEIN_DATA")) old_ = old;
    ::setenv("SKEIN_DATA", value.c_str(), 1);
  }
  ~DataFolder() {
    if (old_.empty()) ::unsetenv("SKEIN_DATA");
    else ::setenv("SKEIN_DATA", old_.c_str(), 1);
  }

 private:
  std::string old_;
};

/// Two training images and one test image of zeros with a mark.
void write_set(const Folder& folder, const std::string& below, unsigned char mark) {
  Bytes two(2 * 784), one(784);
  two[0] = one[0] = mark;
  folder.write(below + "train-images-idx3-ubyte", idx_bytes(8, {2, 28, 28}, two));
  folder.write(below + "train-labels-idx1-ubyte", idx_bytes(8, {2}, {3, 9}));
  folder.write(below + "t10k-images-idx3-ubyte", idx_bytes(8, {1, 28, 28}, one));
  folder.write(below + "t10k-labels-idx1-ubyte", idx_bytes(8, {1}, {0}));
}
}  // namespace

TEST_CASE("MNIST is what its authors published") {
  check_facts("mnist", [] { return sk::data::mnist(); },
              {{5, 0, 4, 1, 9, 2, 1, 3, 1, 4},
               {7, 2, 1, 0, 4, 1, 4, 9, 5, 9},
               0.130660,
               0.308108,
               0.132515,
               0.310480,
               {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
               {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}});
}

TEST_CASE("Fashion-MNIST is what its authors published") {
  check_facts("fashion-mnist", [] { return sk::data::fashion_mnist(); },
              {{9, 0, 0, 3, 0, 2, 7, 2, 5, 5},
               {9, 2, 1, 1, 6, 1, 4, 6, 5, 7},
               0.286041,
               0.353024,
               0.286849,
               0.352444,
               std::vector<int>(10, 6000),
               std::vector<int>(10, 1000)});
}

TEST_CASE("a folder that is named is the only one looked into; SKEIN_DATA is where to look without one") {
  Folder folder, other;
  write_set(folder, "", 77);
  write_set(other, "mnist/", 88);
  const DataFolder environment(other.path());
  CHECK(sk::data::mnist(folder.path()).train.stored(0)[0] == 77);
  CHECK(sk::data::mnist().train.stored(0)[0] == 88);
  CHECK(sk::data::mnist().train.mean() == 0.1307);
  CHECK(sk::data::mnist().train.deviation() == 0.3081);
  const auto sets = sk::data::mnist_or_synthetic(folder.path());
  CHECK(sets.source == "MNIST from " + folder.path());
  CHECK_FALSE(sets.synthetic);
}

TEST_CASE("a folder without the files is refused, and the message says where they are") {
  Folder empty, other;
  write_set(other, "mnist/", 88);
  write_set(other, "fashion-mnist/", 99);
  const DataFolder environment(other.path());
  const std::string absent = empty.path() + "/absent";
  const Thrown t = thrown([&] { sk::data::mnist(absent); });
  CHECK(t.path == absent);
  CHECK(t.says("the four files train-images-idx3-ubyte[.gz], ... are not there; they are in " + other.path() + "/mnist, where "));
  CHECK(thrown([&] { sk::data::fashion_mnist(absent); }).says("they are in " + other.path() + "/fashion-mnist"));
  CHECK(thrown([&] { sk::data::mnist_or_synthetic(absent); }).says("they are in " + other.path() + "/mnist"));
  CHECK(sk::data::find_images("mnist", absent).empty());
}

TEST_CASE("what is not found says where it was looked for and how to get it") {
  Folder empty;
  const DataFolder environment(empty.path());
  if (!sk::data::find_images("letters").empty()) return;
  const std::string here = empty.path() + "/here";
  const Thrown t = thrown([&] { sk::data::detail::load_images("letters", here, 0, 1); });
  CHECK(t.path == here);
  CHECK(t.says("are not there, nor in " + empty.path() + "/letters, ../shared/data/letters, data/letters."));
  CHECK(t.says("To get them: scripts/data letters --to " + here));
  const Thrown anywhere = thrown([&] { sk::data::detail::load_images("letters", {}, 0, 1); });
  CHECK(anywhere.says("Looked in: " + empty.path() + "/letters, ../shared/data/letters, data/letters."));
  CHECK(anywhere.says("To get them: scripts/data letters --to data/letters, or set SKEIN_DATA"));
}

TEST_CASE("files that are there but wrong are never papered over") {
  Folder folder;
  write_set(folder, "", 1);
  folder.write("t10k-labels-idx1-ubyte", idx_bytes(8, {1}, {10}));
  CHECK(thrown([&] { sk::data::mnist(folder.path()); }).says("t10k-labels-idx1-ubyte (byte 8): label 10 is not below 10"));
  CHECK(thrown([&] { sk::data::mnist_or_synthetic(folder.path()); }).says("label 10 is not below 10"));
  write_set(folder, "", 1);
  folder.write("train-images-idx3-ubyte", idx_bytes(8, {2, 14, 14}, Bytes(2 * 196)));
  CHECK(thrown([&] { sk::data::mnist(folder.path()); }).says("its images are not 28 by 28"));
}
