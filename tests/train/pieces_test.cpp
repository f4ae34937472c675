// SPDX-License-Identifier: Apache-2.0
// Sections in several files, and the manifest that says which.
#include <skein/train/checkpoint.hpp>
#include <skein/train/manifest.hpp>
#include <skein/train/pieces.hpp>

#include <catch2/catch.hpp>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace st = skein::train;

namespace {
constexpr sk::Extents extents{2, {7, 5}};
constexpr long pitch = 8;
/// 7 rows of 5 values, 8 apart, from 0.
std::vector<float> padded(float gap) {
  std::vector<float> values(7 * pitch, gap);
  for (std::size_t i = 0; i < 35; ++i) values[i / 5 * pitch + i % 5] = static_cast<float>(i);
  return values;
}
/// A commit of shards, of which each has the values from one cut to the next; the first has an object too.
void write_commit(const std::string& folder, const std::vector<std::int64_t>& cuts) {
  std::filesystem::create_directory(folder);
  const std::vector<float> values = padded(-1);
  std::vector<st::WrittenFile> shards;
  for (std::size_t r = 0; r + 1 < cuts.size(); ++r) {
    st::CheckpointWriter w;
    const std::int64_t b = cuts[r];
    if (cuts[r + 1] > b)
      w.add_values("values", st::SectionType::float32, extents, b, cuts[r + 1], values.data() + b / 5 * pitch + b % 5, pitch);
    if (r == 0) w.add_object("steps", std::int64_t{9});
    sk::AtomicFile file(folder + "/" + st::shard_name(static_cast<int>(r)));
    shards.push_back(w.write(file));
    file.commit();
  }
  st::manifest_of(shards, {{"step", "9"}}, folder).commit(folder + "/" + st::manifest_name);
}
std::string fault(const std::string& folder) {
  try {
    st::CheckpointReader{folder};
  } catch (const sk::FileError& e) { return e.what(); }
  return "";
}
}  // namespace

TEST_CASE("the name of a piece says what it is of, and any other name is none") {
  const st::PieceName piece{"parameters/0.weight[x]", {5, 7, 1}, 3, 30};
  const std::string name = st::piece_name(piece);
  CHECK(name == "parameters/0.weight[x][3:30 of 5x7x1]");
  const auto back = st::parse_piece(name);
  REQUIRE(back);
  CHECK(back->section == piece.section);
  CHECK(back->extents == piece.extents);
  CHECK((back->begin == 3 && back->end == 30));
  for (const char* other :
       {"a", "a[", "a[1:2 of ]x", "a[2:2 of 4]", "a[-1:2 of 4]", "a[01:2 of 4]", "a[1:2 of 4x]", "a[1:2of 4]"})
    CHECK_FALSE(st::parse_piece(other));
}

TEST_CASE("a section comes back from the pieces of several files, wherever it is cut") {
  const support::TemporaryFolder folder;
  int n = 0;
  for (const auto& cuts : std::vector<std::vector<std::int64_t>>{
           {0, 35}, {0, 5, 35}, {0, 3, 35}, {0, 1, 7, 7, 35}, {0, 0, 34, 35}, {0, 11, 12, 13, 24, 35}}) {
    const std::string commit = folder / ("commit" + std::to_string(++n));
    write_commit(commit, cuts);
    st::CheckpointReader reader{commit};
    CHECK(reader.facts().at("step") == "9");
    std::vector<float> values(7 * pitch, -2), flat(35);
    std::int64_t steps = 0;
    reader.read("values", extents, values.data(), pitch);
    CHECK(values == [&] { return padded(-2); }());
    reader.read("values", extents, flat.data(), 5);
    std::vector<float> expected(35);
    std::iota(expected.begin(), expected.end(), 0.0f);
    CHECK(flat == expected);
    reader.read_object("steps", steps);
    CHECK(steps == 9);
    reader.finish();
  }
}

TEST_CASE("a commit whose files do not make it whole is refused") {
  const support::TemporaryFolder folder;
  write_commit(folder / "a", {0, 10, 35});
  write_commit(folder / "b", {0, 12, 35});
  const auto copy = [&](const std::string& what) {
    std::filesystem::copy_file(folder / ("b/" + what), folder / ("a/" + what), std::filesystem::copy_options::overwrite_existing);
  };
  CHECK(fault(folder / "a").empty());
  copy(st::shard_name(0));  // whole in itself, but of another commit
  CHECK_THAT(fault(folder / "a"), Catch::Contains("section 'values' is not whole in its files, or is there twice"));
  copy(st::shard_name(1));
  CHECK_THAT(fault(folder / "a"), Catch::Contains("its manifest does not fit its shards: 'section/values' is said to be"));
  copy(st::manifest_name);
  CHECK(fault(folder / "a").empty());
  std::filesystem::remove(folder / ("a/" + st::shard_name(1)));
  CHECK_THAT(fault(folder / "a"), Catch::Contains("rank_00001.safetensors: cannot be opened"));
  std::filesystem::remove(folder / ("a/" + std::string(st::manifest_name)));
  CHECK_THAT(fault(folder / "a"), Catch::Contains("is a folder without a checkpoint (manifest.safetensors)"));
  CHECK_THROWS_AS(write_commit(folder / "c", {0, 10, 34}), sk::FileError);  // the last value is nobody's
  for (const char* ranks : {"", "0", "-1", "02", "9999999999", "2 "})
    CHECK_THROWS_AS(st::ranks_of_manifest({{"ranks", ranks}}, "m"), sk::FileError);
  CHECK_THROWS_AS(st::ranks_of_manifest({}, "m"), sk::FileError);
}

TEST_CASE("each bit flipped in each file of a commit, and each length, is found on opening") {
  const support::TemporaryFolder folder;
  write_commit(folder / "a", {0, 10, 35});
  for (const std::string& name : {st::shard_name(0), st::shard_name(1), std::string(st::manifest_name)}) {
    const std::string path = folder / ("a/" + name);
    const std::vector<std::byte> sound = support::read_file(path);
    for (std::size_t bit = 0; bit < 8 * sound.size(); bit += 3) {
      auto bytes = sound;
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
      support::write_file(path, bytes.data(), bytes.size());
      REQUIRE(fault(folder / "a") != "");
    }
    for (std::size_t n = 0; n < sound.size(); n += 7) {
      support::write_file(path, sound.data(), n);
      REQUIRE(fault(folder / "a") != "");
    }
    support::write_file(path, sound.data(), sound.size());
    REQUIRE(fault(folder / "a").empty());
  }
}
