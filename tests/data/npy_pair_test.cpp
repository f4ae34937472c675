// SPDX-License-Identifier: Apache-2.0
#include <skein/data/npy_pair.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/data/map.hpp>
#include <skein/data/synthetic_digits.hpp>
#include <skein/tensor/create.hpp>
#include <skein/tensor/npy.hpp>

#include <catch2/catch.hpp>
#include "../support/sanitizers.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
using namespace sk::data;
using Catch::Contains;

namespace {
/// Everything that a set serves, in its order.
struct Served {
  std::vector<float> x, y;
  std::vector<std::int32_t> labels;
  friend bool operator==(const Served&, const Served&) = default;
};
Served served(const DatasetView& set) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(set.size()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  Served s;
  s.x.resize(all.size() * static_cast<std::size_t>(set.sample_extents().count()));
  set.gather(all, s.x.data(), set.sample_extents().count());
  if (set.target().kind == TargetKind::label) {
    s.labels.resize(all.size() * static_cast<std::size_t>(set.target().each));
    set.labels(all, s.labels.data());
  }
  if (set.target().kind == TargetKind::vector) {
    s.y.resize(all.size() * static_cast<std::size_t>(set.target().count));
    set.targets(all, s.y.data(), set.target().count);
  }
  return s;
}
/// 70 samples, read one by one, of which the 66th has no label, or no value.
struct Forgets {
  bool label = false, value = false;
  std::int64_t size() const { return 70; }
  sk::Extents sample_extents() const { return {1, {2}}; }
  Target target() const { return Target::labels(3); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& to) const {
    if (i != 66 || !value) x[0] = x[1] = 1;
    if (i != 66 || !label) to = 2;
  }
};
/// 70 samples, while the last of which is read the file of that path goes.
struct Removes {
  std::string path;
  std::int64_t size() const { return 70; }
  sk::Extents sample_extents() const { return {1, {2}}; }
  Target target() const { return Target::labels(3); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& to) const {
    if (i == 69) std::filesystem::remove(path);
    x[0] = x[1] = 1, to = 2;
  }
};
std::string fault(const std::string& samples, const std::string& targets = "") {
  return support::thrown<sk::Error>([&] { (void)from_npy(samples, targets); });
}
}  // namespace

TEST_CASE("Images go through a pair of .npy files as bytes, and are served as they were") {
  const support::TemporaryFolder folder;
  const auto digits = synthetic_digits(150, sk::Seed{1}).normalize(0, 1);
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  to_npy(digits, x, y);
  const auto packed = from_npy(x, y);
  CHECK(packed.size() == 150);
  CHECK(packed.sample_extents() == sk::Extents{3, {28, 28, 1}});
  CHECK(packed.target() == Target::labels(10));
  CHECK(served(packed) == served(digits));
  CHECK(served(packed.slice(20, 90)) == served(digits.slice(20, 90)));
  CHECK(served(packed.normalize(0.1, 0.3)) == served(digits.normalize(0.1, 0.3)));
  CHECK(packed.non_finite() == NonFinite::absent);
  CHECK(sk::load_npy<std::uint8_t, 4>(x).extent(1) == 28);
  CHECK(from_npy(x).target().kind == TargetKind::none);
  CHECK(from_npy(x, y, 12).target() == Target::labels(12));
}

TEST_CASE("Numbers with target vectors, and tokens with a label each, go through a pair of .npy files") {
  const support::TemporaryFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  std::vector<float> values(70 * 3), targets(70 * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<float>(i) / 7;
  const auto set = from_tensors(values, sk::Extents{1, {3}}, targets);
  to_npy(set, x, y, PackedAs::floats);
  const auto packed = from_npy<float>(x, y);
  CHECK(packed.target() == Target::vector(2));
  CHECK(served(packed) == served(set));
  CHECK(packed.non_finite() == NonFinite::refuse);  // nobody has looked

  std::vector<std::int32_t> tokens(65 * 4), next(65 * 4);
  std::iota(tokens.begin(), tokens.end(), 0);
  for (std::size_t i = 0; i < next.size(); ++i) next[i] = tokens[i] + 1;
  const auto text = from_tensors(tokens, sk::Extents{1, {4}, true}, next);
  to_npy(text, x, y, PackedAs::tokens);
  const auto read = from_npy<std::int32_t>(x, y);
  CHECK(read.target() == Target::labels(261, 4));
  for (std::int64_t i = 0; i < 65; ++i) CHECK(read.stored(i)[3] == text.stored(i)[3]);
  for (std::int64_t i = 0; i < 65; ++i) CHECK(read.label(i, 2) == text.label(i, 2));

  const InMemory<std::int32_t> scored({1, {3}}, std::vector<std::int32_t>(210, 5), std::vector<float>(targets), 2);
  to_npy(scored, x, y, PackedAs::tokens);
  CHECK(served(from_npy<std::int32_t>(x, y)) == served(scored));
}

TEST_CASE("A mapped set outlives the one that it was copied from, and labels of NumPy's own type are class numbers") {
  const support::TemporaryFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  sk::Tensor<std::uint8_t, 2> images(sk::dims(3, 4));
  sk::Tensor<std::int64_t, 1> labels(sk::dims(3));
  for (long i = 0; i < 12; ++i) images.data()[i] = static_cast<std::uint8_t>(20 * i);
  for (long i = 0; i < 3; ++i) labels.data()[i] = 2 - i;
  sk::save_npy(x, images);
  sk::save_npy(y, labels);
  InMemory<std::uint8_t> kept;
  {
    const auto set = from_npy(x, y);
    kept = set.slice(1, 3);
  }
  CHECK(kept.stored(0)[0] == 80);
  CHECK(kept.label(1) == 0);
  CHECK(kept.target() == Target::labels(3));
}

TEST_CASE("A loader looks at the floats of a mapped set, and names the sample") {
  const support::TemporaryFolder folder;
  sk::Tensor<float, 2> values(sk::dims(9, 2));
  for (long i = 0; i < 18; ++i) values.data()[i] = static_cast<float>(i);
  values.data()[11] = NAN;
  sk::save_npy(folder / "x.npy", values);
  const auto set = from_npy<float>(folder / "x.npy");
  Loader<> loader(set, {.batch = 3, .shuffle = false});
  const auto read = [&] {
    for (const auto& batch : loader.epoch(0)) (void)batch;
  };
  CHECK_THAT(support::thrown<sk::Error>(read), Contains("sample 5") && Contains("nan"));
}

TEST_CASE("A pair that is written over stays as it was for who has mapped it, and new samples never have old targets") {
  const support::TemporaryFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  const std::vector<float> values(140, 0);
  to_npy(from_tensors(values, sk::Extents{1, {2}}, std::vector<int>(70, 1)), x, y, PackedAs::floats);
  const auto mapped = from_npy<float>(x, y);
  to_npy(mapped, x, y, PackedAs::floats);  // over itself
  CHECK(served(from_npy<float>(x, y)).x == values);

  CHECK_THAT(support::thrown<sk::FileError>([&] { to_npy(Removes{x + ".partial"}, x, y, PackedAs::floats); }),
             Contains("cannot be renamed"));
  CHECK(served(from_npy<float>(x, y)) == served(mapped));
  CHECK_THAT(support::thrown<sk::FileError>([&] { to_npy(Removes{y + ".partial"}, x, y, PackedAs::floats); }),
             Contains("cannot be renamed"));
  CHECK_THAT(support::thrown<sk::FileError>([&] { (void)from_npy<float>(x, y); }), Contains("y.npy: cannot be opened"));
  CHECK(served(mapped).x == values);
  to_npy(Removes{folder / "none"}, x, y, PackedAs::floats);
  CHECK(served(from_npy<float>(x, y)).labels == std::vector<std::int32_t>(70, 2));
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) CHECK(file.path().extension() == ".npy");
}

TEST_CASE("A pair that is written again and again is always there, whole, for who opens it") {
  const support::TemporaryFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  const auto pair = [&](int v) {
    to_npy(from_tensors(std::vector<float>(4, static_cast<float>(v)), sk::Extents{1, {1}}, std::vector<int>(4, v)), x, y,
           PackedAs::floats);
  };
  pair(0);
  std::atomic<bool> over{false};
  std::thread writes([&] {
    for (int v = 1; !over; ++v) pair(v % 1000);
  });
  std::string wrong;
  bool mixed = false;
  for (int i = 0; i < 100 && wrong.empty() && !mixed; ++i) {
    wrong = support::thrown<sk::FileError>([&] {
      const Served pair_now = served(from_npy<float>(x, y));
      mixed = mixed || static_cast<int>(pair_now.x[0]) != pair_now.labels[0];
    });
  }
  over = true;
  writes.join();
  CHECK(wrong.empty());
  CHECK_FALSE(mixed);
}

TEST_CASE("Targets that are read beside samples which another has replaced meanwhile are not taken") {
  const support::TemporaryFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  const auto write = [&](std::size_t n) {
    to_npy(from_tensors(std::vector<float>(2 * n, 0), sk::Extents{1, {2}}, std::vector<int>(n, 1)), x, y, PackedAs::floats);
  };
  write(4);
  const MappedNpy<float> old = map_npy<float>(x);
  detail::NpyTargets<float> beside;
  const auto read = [&](int attempt, long samples) {
    return detail::read_npy_beside(old.file, x, attempt, [&] { detail::read_npy_targets(y, samples, 0, beside); });
  };
  CHECK(read(1, 4));
  CHECK_THAT(support::thrown<sk::FileError>([&] { (void)read(1, 5); }), Contains("has targets of 4 samples, and there are 5"));
  write(4);  // as many, which nothing else would find
  CHECK_FALSE(read(1, 4));
  write(5);
  CHECK_FALSE(read(detail::pair_attempts - 1, 4));
  CHECK_THAT(support::thrown<sk::FileError>([&] { (void)read(detail::pair_attempts, 4); }),
             Contains("x.npy: was replaced by another file each of 100 times"));
  std::filesystem::remove(x);
  CHECK_FALSE(read(1, 4));
  write(6);
  CHECK(served(from_npy<float>(x, y)).labels.size() == 6);
}

#if !SKEIN_TEST_ASAN  // beside it UBSan looks at the type of an exception through a pipe, which the limit of files refuses
TEST_CASE("A pair stays as it was where its folder cannot be brought to the disk, and no file of another name is taken away") {
  const support::TemporaryFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  const std::vector<float> values(140, 0), other(140, 1);
  to_npy(from_tensors(values, sk::Extents{1, {2}}, std::vector<int>(70, 1)), x, y, PackedAs::floats);
  const std::vector<int> labels(70, 2);
  const auto set = from_tensors(other, sk::Extents{1, {2}}, labels);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int free = ::open("/dev/null", O_RDONLY);
  ::close(free);
  const rlimit two{static_cast<rlim_t>(free) + 2, before.rlim_max};  // the files of the pair, and none for the folder
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &two) == 0);
  const std::string text = support::thrown<sk::FileError>([&] { to_npy(set, x, y, PackedAs::floats); });
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_THAT(text, Contains("the folder cannot be brought to the disk"));
  CHECK(served(from_npy<float>(x, y)).x == values);

  CHECK_THAT(support::thrown<sk::ArgumentError>([&] { to_npy(set, y + ".before", y, PackedAs::floats); }),
             Contains("give the samples another name"));
  CHECK(served(from_npy<float>(x, y)).x == values);
}
#endif

TEST_CASE("Files that are no pair say so") {
  const support::TemporaryFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy", other = folder / "other.npy";
  sk::save_npy(x, sk::Tensor<std::uint8_t, 2>(sk::dims(3, 4)));
  sk::save_npy(y, sk::Tensor<std::int32_t, 1>(sk::dims(2)));
  CHECK_THAT(fault(x, y), Contains("has targets of 2 samples, and there are 3"));
  sk::save_npy(y, sk::Tensor<std::int32_t, 3>(sk::dims(3, 1, 1)));
  CHECK_THAT(fault(x, y), Contains("labels or targets are (samples), or (samples, n)"));
  sk::Tensor<std::int64_t, 1> large(sk::dims(3));
  large.data()[2] = std::int64_t{1} << 40;
  sk::save_npy(y, large);
  CHECK_THAT(fault(x, y), Contains("y.npy"));
  sk::save_npy(y, sk::Tensor<float, 2>(sk::Tensor<float, 2>{{1, 2}, {3, NAN}, {5, 6}}));
  CHECK_THAT(fault(x, y), Contains("y.npy: has a target value that is no finite number, of sample 1"));
  sk::save_npy(y, sk::Tensor<std::int32_t, 1>{0, 2, 1});
  CHECK_THAT(support::thrown<sk::FileError>([&] { (void)from_npy(x, y, 2); }),
             Contains("y.npy: has the label 2 of sample 1, which is not below the number of classes, 2"));
  CHECK_THAT(support::thrown<sk::ArgumentError>([&] { (void)from_npy(x, y, -1); }), Contains("y.npy: -1 classes"));
  CHECK(from_npy(x, y, 3).target() == Target::labels(3));
  sk::save_npy(other, sk::Tensor<float, 2>(sk::dims(3, 4)));
  CHECK_THAT(fault(other), Contains("holds values of type f4, u1 is mapped"));
  CHECK_THAT(fault(folder / "none.npy"), Contains("cannot be opened"));
  CHECK_THAT(fault(x, folder / "none.npy"), Contains("cannot be opened"));

  const auto digits = synthetic_digits(3, sk::Seed{1});
  const auto refused = [&](const DatasetView& set, const std::string& targets, PackedAs stored) {
    return support::thrown<sk::Error>([&] { to_npy(set, x, targets, stored); });
  };
  CHECK_THAT(refused(digits.normalize(0.2, 0.3), y, PackedAs::bytes),
             Contains("sample 0 has the value") && Contains("set.normalize(0, 1)"));
  CHECK_THAT(refused(digits, x, PackedAs::bytes), Contains("have one path"));
  CHECK_THAT(refused(digits, "", PackedAs::bytes), Contains("name a place for them too"));
  CHECK_THAT(refused(digits, y, PackedAs::tokens), Contains("this set gives no tokens"));
  CHECK_THAT(refused(digits, y, static_cast<PackedAs>(7)), Contains("to_npy: PackedAs is 7"));
  CHECK_THAT(refused(from_tensors(std::vector<float>{1, 2}, sk::Extents{1, {1}}), y, PackedAs::floats),
             Contains("neither labels nor targets"));
  CHECK_THAT(support::thrown<sk::Error>([&] { to_npy(digits, folder / "no/x.npy", y); }), Contains("cannot be created"));
  CHECK(refused(Forgets{.label = true}, y, PackedAs::bytes) ==
        "to_npy: the label of sample 66 is left out by read() or labels() of the data set: write it");
  CHECK_THAT(refused(Forgets{.value = true}, y, PackedAs::floats), Contains("to_npy: value 0 of sample 66 is nan: correct it"));
  const auto kept = from_tensors(std::vector<float>{1, NAN}, sk::Extents{1, {1}}, std::vector<int>{0, 1}, NonFinite::keep);
  CHECK(refused(kept, y, PackedAs::floats).empty());
}
