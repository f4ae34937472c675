// SPDX-License-Identifier: Apache-2.0
#include <skein/core/random.hpp>
#include <skein/train/checkpoint.hpp>
#include <skein/train/history.hpp>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <sys/wait.h>
#include <unistd.h>
#include <thread>

#include "support/temporary_folder.hpp"

namespace sk = skein;
using sk::train::CheckpointReader;
using sk::train::CheckpointWriter;
using sk::InputFile;

namespace {
constexpr sk::Extents weight_extents{2, {3, 5}};
struct State {
  std::vector<float> weight = std::vector<float>(3 * 8);  // rows of 5, 8 apart: (3, 5)
  std::vector<double> moment = std::vector<double>(7);
  std::vector<std::int64_t> counters = {1, -2, 3};
  std::map<std::string, int> loader{{"epoch", 3}, {"position", 70}};

  explicit State(int start = 0) {
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 5; ++j) weight[std::size_t(8 * i + j)] = static_cast<float>(start + 10 * i + j) + 0.1f;
    std::iota(moment.begin(), moment.end(), start + 0.5);
  }
  void save(CheckpointWriter& w) const {
    w.add("parameters/0.weight", weight_extents, weight.data(), 8);
    w.add("optimizer/moment", std::span<const double>(moment));
    w.add("counters", std::span<const std::int64_t>(counters));
    w.add_object("loader", loader);
  }
  void load(CheckpointReader& r) {
    r.read("parameters/0.weight", weight_extents, weight.data(), 8);
    r.read("optimizer/moment", std::span<double>(moment));
    r.read("counters", std::span<std::int64_t>(counters));
    r.read_object("loader", loader);
    r.finish();
  }
  bool operator==(const State&) const = default;
};
void save(const State& state, const std::string& path) {
  CheckpointWriter w;
  state.save(w);
  w.commit(path);
}
std::vector<std::byte> saved_bytes(const State& state) {
  support::TemporaryFolder folder;
  save(state, folder / "c");
  return support::read_file(folder / "c");
}
/// Opens, reads everything; the message where it is refused.
std::string fault(std::span<const std::byte> bytes) {
  try {
    CheckpointReader reader{InputFile(bytes, "f")};
    State state;
    state.load(reader);
  } catch (const sk::FileError& error) { return error.what(); }
  return "";
}
/// The hash of the header as it must be for the bytes: an attacker's file.
void seal(std::vector<std::byte>& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  if (length > bytes.size() - 8) return;
  const std::string header(reinterpret_cast<const char*>(bytes.data()), 8 + length);
  const std::string digits = sk::train::detail::hex(sk::train::detail::hash_of_header(header));
  const std::size_t at = header.find("header_xxh64");
  if (at != header.npos && at + 31 <= header.size()) std::memcpy(bytes.data() + at + 15, digits.data(), 16);
}
}  // namespace

TEST_CASE("a checkpoint comes back with the same bits, gaps untouched") {
  support::TemporaryFolder folder;
  State state(3), back(100);
  state.weight[6] = 77;  // in the gap: not stored
  save(state, folder / "c");
  back.weight[6] = 55;
  CheckpointReader reader{folder / "c"};
  CHECK_THROWS_WITH(CheckpointReader{folder / "."}, Catch::Contains("is a folder without a checkpoint"));
  back.load(reader);
  CHECK(back.weight[6] == 55);
  back.weight[6] = 77;
  CHECK(back == state);
  CHECK(reader.written_by().find("skein 0.") == 0);
  CHECK(folder.names() == std::vector<std::string>{"c"});
}

TEST_CASE("the file is what the format says") {
  const auto bytes = saved_bytes(State{});
  CheckpointReader reader{InputFile(bytes, "f")};
  REQUIRE(reader.sections().size() == 4);
  const auto& info = reader.section("parameters/0.weight");
  CHECK(info.text() == "float32 (3, 5)");
  CHECK(info.offset % 4 == 0);
  CHECK(info.bytes == 60);
  CHECK(info.hash == sk::train::hash64(bytes.data() + info.offset, 60));
  float second_row = 0;
  std::memcpy(&second_row, bytes.data() + info.offset + 5 * sizeof(float), sizeof second_row);
  CHECK(second_row == 10.1f);
  CHECK(reader.contains("loader"));
  CHECK_FALSE(reader.contains("load"));
}

TEST_CASE("nothing at all can be saved, too; so can empty tensors and long padded ones") {
  support::TemporaryFolder folder;
  CheckpointWriter{}.commit(folder / "empty");
  CHECK(CheckpointReader(folder / "empty").sections().empty());

  const sk::Extents extents{2, {3001, 300}};
  std::vector<float> values(3001 * 304), back(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 304 < 300 ? sk::random_uniform(1, 2, i) : 0.0f;
  CheckpointWriter w;
  w.add("long", extents, values.data(), 304);
  w.add("none", std::span<const int>());
  w.commit(folder / "long");
  CHECK(std::filesystem::file_size(folder / "long") < 3001 * 300 * 4 + 1024);
  CheckpointReader reader{folder / "long"};
  reader.read("long", extents, back.data(), 304);
  reader.read("none", std::span<int>());
  reader.finish();
  CHECK(back == values);
}

TEST_CASE("cut at every length: a FileError that says so") {
  const auto bytes = saved_bytes(State{});
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const std::string message = fault(std::span(bytes).first(n));
    REQUIRE(message.find(n == 0 ? "is empty" : n < 8 ? "is no skein checkpoint" : "was cut") != std::string::npos);
  }
  auto longer = bytes;
  longer.resize(bytes.size() + 64);
  CHECK(fault(longer).find("it was appended to") != std::string::npos);
}

TEST_CASE("each bit flipped is found on opening") {
  const auto bytes = saved_bytes(State{});
  REQUIRE(fault(bytes) == "");
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] ^= std::byte(1 << bit % 8);
    bool found = false;
    try {
      CheckpointReader reader{InputFile(flipped, "f")};
    } catch (const sk::FileError&) { found = true; }
    REQUIRE(found);
  }
}

TEST_CASE("with Verify::Table a damaged section is found when it is read") {
  auto bytes = saved_bytes(State{});
  const auto at = CheckpointReader{InputFile(bytes, "f")}.section("optimizer/moment").offset;
  bytes[at + 3] ^= std::byte{4};
  CHECK(fault(bytes) == "f (byte " + std::to_string(at) + "): section 'optimizer/moment' is damaged: its hash does not fit");
  CheckpointReader reader{InputFile(bytes, "f"), sk::train::Verify::Table};
  std::vector<double> moment(7);
  CHECK_THROWS_AS(reader.read("optimizer/moment", std::span(moment)), sk::FileError);
  std::vector<std::int64_t> counters(3);
  CHECK_NOTHROW(reader.read("counters", std::span(counters)));
}

TEST_CASE("each bit of header and table flipped under fitting hashes: refused or harmless, never a crash") {
  const auto bytes = saved_bytes(State{});
  const std::size_t end = CheckpointReader{InputFile(bytes, "f")}.sections()[0].offset;
  for (std::size_t bit = 0; bit < 8 * end; ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] ^= std::byte(1 << bit % 8);
    seal(flipped);
    REQUIRE_NOTHROW(fault(flipped));
  }
}

TEST_CASE("a later format, foreign files, and a header that lies are named") {
  auto later = saved_bytes(State{});
  later[sk::train::detail::safetensors_begin.size() + 8] = std::byte{'9'};
  seal(later);
  CHECK_THROWS_AS((CheckpointReader{InputFile(later, "f")}), sk::train::VersionError);
  CHECK(fault(later) == "f (byte 45): has checkpoint format 9, but this program knows up to 2: take a later skein");
  const std::string text = "PK\3\4 something else that is long enough to be a header of sixty-four bytes";
  CHECK(fault(std::as_bytes(std::span(text))) == "f (byte 0): is no skein checkpoint: another file begins like this");
  for (const std::string table :
       {"a,b\n1,2\n", "a,b\n1,2\n3,4\n5,6\n"})  // as short as the beginning of a checkpoint, and shorter
    CHECK(fault(std::as_bytes(std::span(table))) == "f (byte 0): is no skein checkpoint: another file begins like this");
  auto hostile = saved_bytes(State{});
  for (int i = 0; i < 8; ++i) hostile[std::size_t(i)] = std::byte{0xff};  // a header of 2^64 - 1 bytes
  CHECK(fault(hostile) == "f (byte 0): the header is said to be longer than any is: it is damaged");
  const std::string foreign = std::string("\x18\0\0\0\0\0\0\0", 8) + R"({"__metadata__":{"a":"b"}})";
  CHECK(fault(std::as_bytes(std::span(foreign))) ==
        "f (byte 0): is a safetensors file that skein did not write: it has no hashes to check");
  CHECK_THROWS_WITH(CheckpointReader{"/nowhere/c"}, "/nowhere/c: cannot be opened: No such file or directory");
}

TEST_CASE("missing, unknown and unfitting sections are named") {
  const auto bytes = saved_bytes(State{});
  CheckpointReader reader{InputFile(bytes, "f")};
  std::vector<float> f(15);
  const auto at = std::to_string(reader.section("parameters/0.weight").offset);
  CHECK_THROWS_WITH(reader.read("bias", std::span(f)),
                    "f: has no section 'bias'; it has: optimizer/moment, counters, parameters/0.weight, loader");
  CHECK_THROWS_WITH(reader.read("parameters/0.weight", sk::Extents{2, {5, 3}}, f.data(), 3),
                    "f (byte " + at +
                        "): section 'parameters/0.weight' holds float32 (3, 5), but here it must be float32 (5, 3): the "
                        "file was saved from another network or scalar type");
  std::vector<double> d(15);
  CHECK_THROWS_AS(reader.read("parameters/0.weight", weight_extents, d.data(), 5), sk::FileError);
  CHECK_THROWS_WITH(reader.read("parameters/0.weight", weight_extents, f.data(), 4),
                    "checkpoint section 'parameters/0.weight': rows of 5 values cannot be 4 apart");
  CHECK_THROWS_AS(reader.read("loader", std::span(f)), sk::FileError);
  int wrong = 0;
  CHECK_THROWS_AS(reader.read_object("counters", wrong), sk::FileError);
  CHECK_THROWS_AS(reader.read_object("loader", wrong), sk::FileError);  // bytes are left over
  reader.read("parameters/0.weight", weight_extents, f.data(), 5);
  CHECK_THROWS_WITH(
      reader.finish(),
      "f: 3 section(s) of the file have no place here: 'optimizer/moment', 'counters', 'loader'; the file was saved from "
      "another model or optimizer");
}

TEST_CASE("the writer refuses names that no reader could tell apart") {
  CheckpointWriter w;
  const std::vector<float> values(3);
  w.add("a", std::span(values));
  CHECK_THROWS_WITH(w.add("a", std::span(values)), "checkpoint section 'a' was added twice: each name once");
  CHECK_THROWS_AS(w.add("", std::span(values)), sk::ArgumentError);
  CHECK_THROWS_AS(w.add(std::string(513, 'x'), std::span(values)), sk::ArgumentError);
  CHECK_THROWS_AS(w.add("b", sk::Extents{1, {3}}, values.data(), 2), sk::ArgumentError);
  CHECK(w.size() == 1);
}

TEST_CASE("killed before the rename, the old checkpoint loads") {
  support::TemporaryFolder folder;
  save(State(1), folder / "c");
  const pid_t child = ::fork();
  if (child == 0) {
    const State next(2);
    CheckpointWriter w;
    next.save(w);
    sk::AtomicFile file(folder / "c");
    w.write(file);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE((::waitpid(child, &status, 0) == child && WIFSIGNALED(status)));
  State back;
  CheckpointReader reader{folder / "c"};
  back.load(reader);
  CHECK(back == State(1));
}

TEST_CASE("killed at random instants, some committed state always loads, and never an older one than was seen") {
  support::TemporaryFolder folder;
  const std::string path = folder / "c";
  save(State(0), path);
  int last = 0;
  for (int trial = 0; trial < 12; ++trial) {
    int saved[2];
    REQUIRE(::pipe(saved) == 0);
    const pid_t child = ::fork();
    if (child == 0)
      for (int i = last + 1;; ++i) {
        save(State(i), path);
        if (i == last + 1) (void)!::write(saved[1], "x", 1);
      }
    char one = 0;
    if (trial % 4 == 0) (void)!::read(saved[0], &one, 1);  // some come that far, however slow the disk is
    std::this_thread::sleep_for(std::chrono::microseconds(500 + sk::random_below(7, 1, std::uint64_t(trial), 20000)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(saved[0]), ::close(saved[1]);
    State back(-1);
    CheckpointReader reader{path};
    back.load(reader);
    const int now = static_cast<int>(back.moment[0] - 0.5);
    REQUIRE(back == State(now));
    REQUIRE(now >= last);
    last = now;
  }
  CHECK(last > 0);
}

TEST_CASE("a history goes into a checkpoint and comes back") {
  sk::History history, back;
  sk::train::EpochRecord record;
  record.epoch = 1;
  record.validation.set("top-5", 0.5);
  history.add(record);
  history.add(sk::train::StepRecord{.step = 3, .epoch = 1, .loss = 0.25});
  sk::train::from_bytes(sk::train::to_bytes(history), back);
  CHECK(back.csv() == history.csv());
  CHECK(back.steps_csv() == history.steps_csv());
  CHECK(back.back().validation["top-5"] == 0.5);
}
