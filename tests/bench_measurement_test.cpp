// SPDX-License-Identifier: Apache-2.0
// What the figures of the benches rest on: a machine that cannot measure is found out, and so is a result that is wrong.
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <support/temporary_folder.hpp>

#include "../bench/support/apart.hpp"
#include "../bench/support/peer.hpp"
#include "../bench/support/report.hpp"
#include "../bench/support/slices.hpp"

namespace {
/// A candidate whose calls take 100 us, up to `scatter` times more or less, by a clock of its own, which copies of it share.
bench::Candidate scattered(double scatter) {
  return [random = std::make_shared<std::mt19937_64>(3), scatter](long n) {
    const double factor = std::uniform_real_distribution<double>(1 / scatter, scatter)(*random);
    return bench::Slice{1e-4 * static_cast<double>(n) * factor, 0};
  };
}
}  // namespace

TEST_CASE("bench: a candidate measures as itself where its ratio to itself is 1 and known well", "[bench]") {
  CHECK(bench::measures_as_itself({1, 0.995, 1.005}));
  CHECK(bench::measures_as_itself({0.991, 0.985, 1.02}));
  CHECK_FALSE(bench::measures_as_itself({1.012, 1.008, 1.016}));
  CHECK_FALSE(bench::measures_as_itself({1, 0.97, 1.03}));
  CHECK_FALSE(bench::measures_as_itself({}));  // of no round at all
}

TEST_CASE("bench: the figures of a machine that scatters are void", "[bench]") {
  CHECK(bench::void_reason(scattered(1.01), {0.002, 40}).empty());
  CHECK_THAT(bench::void_reason(scattered(3), {0.002, 40}), Catch::StartsWith("void: A/A gave "));
}

TEST_CASE("bench: a result of NaNs is not right, whatever came before and after", "[bench]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> expected{1, -4, 2};
  const auto off = [&](const std::vector<float>& got) { return bench::apart(got.data(), expected.data(), 3); };
  CHECK(off({1, -4, 2}) == 0);
  CHECK(off({1, -4, 4}) == Approx(0.5));
  for (const std::vector<float>& got : {std::vector<float>{nan, -4, 2}, {1, nan, 2}, {1, -4, nan}, {nan, nan, nan}})
    CHECK_FALSE(off(got) <= 1e30);
  CHECK_FALSE(bench::larger(nan, 1) <= 1e30);
  CHECK_FALSE(bench::larger(1, nan) <= 1e30);
  CHECK(bench::larger(2, -3) == 3);
}

TEST_CASE("Bytes are named by a unit of which they are a whole number", "[bench]") {
  CHECK(bench::size_in_words(40'000) == "40 kB");
  CHECK(bench::size_in_words(64 << 10) == "64 KiB");
  CHECK(bench::size_in_words(4'000'000) == "4 MB");
  CHECK(bench::size_in_words(16'000'000) == "16 MB");  // 15.26 MiB, though a whole number of KiB
  CHECK(bench::size_in_words(16 << 20) == "16 MiB");
}

TEST_CASE("Figures of a quick run say so where they are kept", "[bench]") {
  const support::TemporaryFolder folder;
  for (const bool quick : {false, true}) {
    const std::string file = folder / (quick ? "quick.jsonl" : "whole.jsonl");
    bench::Report report("step", {.quick = quick, .json = file});
    report.add({.metric = "a step", .ours = 1.0, .note = "of LeNet"});
    CHECK(report.finish() == 0);
    std::string line;
    std::getline(std::ifstream(file), line);
    CHECK_THAT(line, Catch::Contains(quick ? "\"of LeNet; quick; load " : "\"of LeNet; load "));
  }
}

TEST_CASE("A peer's Python without a slash in its name is looked for in PATH", "[bench]") {
  const support::TemporaryFolder folder;
  const std::string program = folder / "skein_stand_in_python", path = std::getenv("PATH");
  std::ofstream(program) << "#!/bin/sh\necho ready\nwhile read -r request; do echo 2 3; done\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const char* const python = std::getenv("SKEIN_PEER_PYTHON");
  const std::string before = python ? python : "";
  setenv("PATH", (std::filesystem::path(program).parent_path().string() + ":" + path).c_str(), 1);
  setenv("SKEIN_PEER_PYTHON", "skein_stand_in_python", 1);
  {
    bench::Peer peer("none.py", {});
    const bench::Slice slice = peer.run(1);
    CHECK((slice.wall == 2 && slice.cpu == 3));
  }
  std::signal(SIGPIPE, SIG_DFL);  // Peer ignores it
  setenv("PATH", path.c_str(), 1);
  if (python) setenv("SKEIN_PEER_PYTHON", before.c_str(), 1);
  else unsetenv("SKEIN_PEER_PYTHON");
}
