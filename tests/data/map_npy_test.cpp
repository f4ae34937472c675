// SPDX-License-Identifier: Apache-2.0
#include <skein/data/map_npy.hpp>

#include <sys/stat.h>

#include <string>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/data/moments.hpp>
#include <skein/data/standardizer.hpp>
#include <skein/data/subset.hpp>
#include <skein/tensor/npy.hpp>

#include <catch2/catch.hpp>
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
using namespace sk::data;

namespace {
using support::thrown;
/// A .npy file with this dictionary, padded as NumPy pads it, and bytes of values behind it.
std::string write(const support::TemporaryFolder& folder, std::string dictionary, std::size_t value_bytes,
                  std::size_t header = 128) {
  std::string s("\x93NUMPY\x01\x00", 8);
  dictionary += std::string(header - 11 - dictionary.size(), ' ') + "\n";
  s += static_cast<char>(dictionary.size() & 0xff);
  s += static_cast<char>(dictionary.size() >> 8);
  s += dictionary;
  for (std::size_t i = 0; i < value_bytes; ++i) s += static_cast<char>(i);
  const std::string path = folder / "hostile.npy";
  support::write_file(path, s.data(), s.size());
  return path;
}
std::string fault(const std::string& path) {
  return thrown<sk::Error>([&] { map_npy<std::int32_t>(path); });
}
using Catch::Contains;
}  // namespace

TEST_CASE("a .npy file is mapped, and stays mapped as long as a copy is there") {
  const support::TemporaryFolder folder;
  sk::Tensor<std::int32_t, 2> a(sk::dims(3, 4));
  for (long i = 0; i < 12; ++i) a.data()[i] = static_cast<std::int32_t>(i * i);
  sk::save_npy(folder / "a.npy", a);
  MappedNpy<std::int32_t> kept;
  {
    const auto mapped = map_npy<std::int32_t>(folder / "a.npy");
    CHECK(mapped.extents == std::vector<long>{3, 4});
    kept = mapped;
  }
  REQUIRE(kept.values.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) CHECK(kept.values[i] == static_cast<int>(i * i));
}

TEST_CASE("an array that was moved from keeps its file: its values are there whatever becomes of the other one") {
  const support::TemporaryFolder folder;
  sk::Tensor<std::int32_t, 1> a(sk::dims(5000));
  for (long i = 0; i < 5000; ++i) a.data()[i] = static_cast<std::int32_t>(3 * i);
  sk::save_npy(folder / "a.npy", a);
  auto from = map_npy<std::int32_t>(folder / "a.npy");
  MappedFile file = from.file;
  {
    const MappedNpy<std::int32_t> to = std::move(from);
    const MappedFile other = std::move(file);
    CHECK((to.values[4999] == 14997 && to.extents == std::vector<long>{5000} && other.bytes));
  }
  REQUIRE((from.file.bytes && file.bytes && file.size == from.file.size));
  CHECK(from.extents == std::vector<long>{5000});
  CHECK(from.values[4999] == 14997);
}

TEST_CASE("a file that is not what is mapped says how to mend it") {
  const support::TemporaryFolder folder;
  CHECK_THAT(fault(folder / "none.npy"), Contains("cannot be opened"));
  CHECK_THAT(fault(folder / "."), Contains("no plain file"));
  support::write_file(folder / "empty.npy", "", 0);
  REQUIRE(::mkfifo((folder / "pipe.npy").c_str(), 0600) == 0);
  CHECK_THAT(fault(folder / "pipe.npy"), Contains("no plain file"));  // and does not wait for a writer
  CHECK_THAT(fault(folder / "empty.npy"), Contains("is empty"));
  const auto of = [&](const std::string& descr, const std::string& shape, const std::string& order, std::size_t bytes,
                      std::size_t header = 128) {
    return fault(
        write(folder, "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }", bytes, header));
  };
  CHECK(of("<i4", "(5,)", "False", 20) == "");
  CHECK_THAT(of("<i8", "(5,)", "False", 40), Contains("holds values of type i8, i4 is mapped") && Contains(".astype(\"i4\")"));
  CHECK_THAT(of("<u4", "(5,)", "False", 20), Contains("type u4"));
  CHECK_THAT(of(">i4", "(5,)", "False", 20), Contains("other byte order"));
  CHECK_THAT(of("<i4", "(5, 1)", "True", 20), Contains("column-major") && Contains("ascontiguousarray"));
  CHECK(of("<i4", "(5,)", "True", 20) == "");
  CHECK_THAT(of("<i4", "(5,)", "False", 20, 126), Contains("not aligned"));
  CHECK(of("<i4", "(6,)", "False", 20) != "");                      // too short
  CHECK(of("<i4", "(4,)", "False", 20) != "");                      // too long
  CHECK(of("<i4", "(4611686018427387904, 4)", "False", 20) != "");  // would overflow
}

TEMPLATE_TEST_CASE("a text becomes windows with the token that follows each", "", std::int32_t, std::uint16_t, std::uint8_t) {
  const support::TemporaryFolder folder;
  sk::Tensor<TestType, 1> text(sk::dims(23));
  for (long i = 0; i < 23; ++i) text.data()[i] = static_cast<TestType>(3 * i);
  sk::save_npy(folder / "text.npy", text);
  const NextTokens<TestType> samples(map_npy<TestType>(folder / "text.npy"), {.length = 4, .stride = 3, .vocabulary = 70});
  CHECK(samples.size() == 7);  // the last begins at 18 and its last label is 22
  CHECK(samples.target() == Target::labels(70, 4));
  CHECK(samples.sample_extents() == sk::Extents{1, {4}, true});
  const DatasetView view = samples;
  CHECK((view.gives_tokens() && !view.gives_numbers()));
  for (const long at : {6L, 0L}) {
    const std::int64_t index[] = {at};
    std::int32_t x[4], labels[4];
    view.serve(index, Destination<std::int32_t>{.x = x, .pitch = 4, .labels = labels});
    for (int t = 0; t < 4; ++t) CHECK((x[t] == 3 * (3 * at + t) && labels[t] == 3 * (3 * at + t + 1)));
  }
  CHECK(NextTokens<TestType>(map_npy<TestType>(folder / "text.npy"), {.length = 11}).size() == 2);
  CHECK(NextTokens<TestType>(map_npy<TestType>(folder / "text.npy"), {.length = 22}).size() == 1);
  CHECK_THAT(thrown<sk::Error>([&] { NextTokens<TestType>(map_npy<TestType>(folder / "text.npy"), {.length = 23}); }),
             Contains("needs a longer text than 23 tokens"));
  CHECK_THAT(thrown<sk::Error>([&] { NextTokens<TestType>(map_npy<TestType>(folder / "text.npy"), {}); }),
             Contains(".length is at least 1"));
  CHECK_THAT(
      thrown<sk::Error>([&] { NextTokens<TestType>(map_npy<TestType>(folder / "text.npy"), {.length = 4, .vocabulary = -5}); }),
      Contains(".vocabulary are not negative"));
}

TEST_CASE("windows of a text that were moved from keep its file mapped") {
  const support::TemporaryFolder folder;
  sk::save_npy(folder / "text.npy", sk::Tensor<std::int32_t, 1>{5, 6, 7, 8, 9});
  NextTokens<> first(map_npy<std::int32_t>(folder / "text.npy"), {.length = 2});
  { const NextTokens<> second = std::move(first); }
  std::int32_t x[2] = {};
  const std::int64_t last[] = {1};
  first.gather(last, x, 2);
  CHECK((first.size() == 2 && x[0] == 7 && x[1] == 8));
}

TEST_CASE("tokens that are taken for numbers, and numbers for tokens, are refused where they are looked at") {
  const std::vector<std::int32_t> text(100);
  const NextTokens<> windows(text, {.length = 5});
  const auto numbers = from_tensors(std::vector<float>(20), sk::Extents{1, {5}});
  Loader<> of_tokens{windows, {.batch = 3, .tokens = true}}, of_numbers{numbers, {.batch = 3}};
  const auto tokens = of_tokens.epoch(0).begin(), floats = of_numbers.epoch(0).begin();
  CHECK_THAT(thrown<sk::ArgumentError>([&] { tokens->view<2>(); }), Contains("batch.token_view() has them"));
  CHECK_THAT(thrown<sk::ArgumentError>([&] { floats->token_view(); }), Contains("a loader serves tokens with .tokens = true"));
  CHECK_THAT(thrown<sk::ArgumentError>([&] { (void)moments(windows); }),
             Contains("a data set has tokens, and numbers are asked"));
  CHECK_THAT(thrown<sk::ArgumentError>([&] { (void)Standardizer(windows); }), Contains("numbers are asked for"));
  std::int32_t x[5];
  const std::int64_t first[] = {0};
  CHECK_THAT(thrown<sk::ArgumentError>([&] { DatasetView(numbers).gather(first, x, 5); }), Contains("tokens are asked for"));
  CHECK_THAT(thrown<sk::ArgumentError>([&] { DatasetView().gather(first, x, 5); }), Contains("there is no data set"));
  const auto integers = from_tensors(std::vector<std::int32_t>(20, 7), sk::Extents{1, {5}});
  CHECK_NOTHROW(DatasetView(integers).gather(first, x, 5));
  CHECK(x[4] == 7);
  CHECK_THAT(thrown<sk::ArgumentError>([&] { DatasetView(integers.normalize(5, 2)).gather(first, x, 5); }),
             Contains("is normalised, and tokens are asked for"));
}

TEST_CASE("a loader serves tokens where they are asked for, of subsets too, with their labels") {
  std::vector<std::int32_t> text(100);
  for (std::size_t i = 0; i < 100; ++i) text[i] = static_cast<std::int32_t>(i);
  const NextTokens<> windows(std::span<const std::int32_t>(text), {.length = 5, .stride = 1});
  const Subset<NextTokens<>> chosen(windows, {10, 20, 30, 40, 50});
  for (auto prefetch : {Prefetch::on, Prefetch::off}) {
    Loader loader{chosen, {.batch = 3, .ranks = 2, .rank = 1, .prefetch = prefetch, .tokens = true}};
    long samples = 0;
    for (const auto& b : loader.epoch(1)) {
      CHECK((b.x == nullptr && b.pitch == 5 && b.labels_each == 5));
      for (long i = 0; i < b.count; ++i, ++samples)
        for (long t = 0; t < 5; ++t) {
          CHECK(b.token_view()(i, t) == b.tokens[5 * i] + t);
          CHECK(b.labels[5 * i + t] == b.tokens[5 * i + t] + 1);
          CHECK(b.tokens[5 * i] == 10 * (b.indices[i] + 1));
        }
    }
    CHECK(samples > 1);
  }
  CHECK_THAT(thrown<sk::Error>([&] { Loader<float>(chosen, {.batch = 3}); }), Contains("ask for them with .tokens"));
}
