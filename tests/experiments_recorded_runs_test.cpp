// SPDX-License-Identifier: Apache-2.0
// The runs that experiments keep in a file, and what they read there.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <support/temporary_folder.hpp>

#include "../examples/experiments/support/recorded_runs.hpp"

namespace ex = experiments;

TEST_CASE("A run is read as it was written, the last of its ranks, and other settings are passed over", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "times.csv";
  CHECK(ex::recorded_runs(file, "lenet").empty());
  CHECK(ex::record_run(file, "lenet", 2, 6) == "no run of one rank with these settings in " + file + ": no speed-up");
  CHECK(ex::record_run(file, "lenet", 1, 10, {1.5, 8.5}) == "speed-up 1.00, efficiency 1.00");
  CHECK(ex::record_run(file, "lenet x2", 1, 99) == "speed-up 1.00, efficiency 1.00");
  CHECK(ex::record_run(file, "lenet", 2, 5, {0.5}) == "speed-up 2.00, efficiency 1.00");
  std::ofstream(file, std::ios::app) << "lenet,4\nlenet,0,3\nlenet,4,-1\nlenet,x\n";
  const auto runs = ex::recorded_runs(file, "lenet");
  REQUIRE(runs.size() == 2);
  CHECK((runs[0].ranks == 1 && runs[0].seconds == 10 && runs[0].more == std::vector<double>{1.5, 8.5}));
  CHECK((runs[1].ranks == 2 && runs[1].seconds == 5 && runs[1].more == std::vector<double>{0.5}));
  CHECK(ex::seconds_of_one(file, "lenet") == 10);
  CHECK(ex::seconds_of_one(file, "lenet x2") == 99);
  CHECK(ex::seconds_of_one(file, "lene") == 0);
}

TEST_CASE("A run begins on a line of its own, behind a last line without an end", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "times.csv";
  support::write_file(file, "lenet,1,10", 10);
  CHECK(ex::ends_within_a_line(file));
  CHECK(ex::record_run(file, "lenet", 2, 5) == "speed-up 2.00, efficiency 1.00");
  CHECK(support::read_text(file) == "lenet,1,10\nlenet,2,5\n");
  CHECK_FALSE(ex::ends_within_a_line(file));
  CHECK_FALSE(ex::ends_within_a_line(folder / "absent.csv"));
  CHECK_FALSE(ex::ends_within_a_line("/dev/null"));
  support::write_file(folder / "empty.csv", "", 0);
  CHECK_FALSE(ex::ends_within_a_line(folder / "empty.csv"));
}

TEST_CASE("A run stands alone where the file keeps nothing or none is named, and among those of the file otherwise",
          "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "times.csv";
  const ex::RecordedRun own{2, 5, {1, 4}};
  for (const std::string& nothing : {std::string("/dev/null"), std::string(), folder / "absent.csv"}) {
    CAPTURE(nothing);
    if (nothing == "/dev/null")
      CHECK(ex::record_run(nothing, "lenet", own.ranks, own.seconds, own.more) ==
            "no run of one rank with these settings in /dev/null: no speed-up");
    const auto runs = ex::runs_with(own, nothing, "lenet");
    REQUIRE(runs.size() == 1);
    CHECK((runs[0].ranks == 2 && runs[0].seconds == 5 && runs[0].more == own.more));
  }
  ex::record_run(file, "lenet", 4, 3, {9});  // of another program: it has other numbers
  ex::record_run(file, "lenet", 1, 10, {2, 8});
  ex::record_run(file, "lenet", own.ranks, own.seconds, own.more);
  const auto runs = ex::runs_with(own, file, "lenet");
  REQUIRE(runs.size() == 2);
  CHECK((runs[0].ranks == 1 && runs[1].ranks == 2));
}

TEST_CASE("A pipe takes a run, and is not waited for to give it back", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  CHECK(ex::record_run(pipe, "lenet", 1, 10) == "no run of one rank with these settings in " + pipe + ": no speed-up");
  char text[32] = {};
  CHECK(::read(reader, text, sizeof text - 1) == 11);
  CHECK(std::string(text) == "lenet,1,10\n");
  ::close(reader);
}

namespace {
struct Batches {
  long batch = 0, global_batch = 0;
};
std::string named(const Batches& b) { return "lenet by " + std::to_string(b.batch); }
}  // namespace

TEST_CASE("The lines of a file are compared at an equal batch of a rank, and at an equal batch of all ranks", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "times.csv";
  const auto strong = ex::settings_by_ranks(Batches{6, 24}, named);
  CHECK(ex::record_run(file, ex::settings_by_ranks(Batches{24, 0}, named), 1, 12) == "speed-up 1.00, efficiency 1.00");
  CHECK(ex::record_run(file, strong, 4, 4) == "speed-up 3.00, efficiency 0.75");
  ex::record_run(file, "lenet by 12", 2, 8);
  ex::record_run(file, "lenet by 12", 1, 15);  // weak scaling's run of one rank
  ex::record_run(file, "lenet by 24", 2, 11);
  const auto of = [](const std::vector<ex::RecordedRun>& runs) {
    std::vector<double> seconds;
    for (const ex::RecordedRun& run : runs) seconds.push_back(run.seconds);
    return seconds;
  };
  CHECK(of(ex::recorded_runs(file, strong)) == std::vector<double>{12, 8, 4});
  CHECK(of(ex::recorded_runs(file, ex::settings_by_ranks(Batches{12, 0}, named))) == std::vector<double>{15, 8});
  CHECK(of(ex::recorded_runs(file, ex::settings_by_ranks(Batches{24, 0}, named))) == std::vector<double>{12, 11});
  CHECK(ex::seconds_of_one(file, strong) == 12);
}

TEST_CASE("A run without one of one rank is told of that with its batch of all ranks", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "times.csv";
  CHECK(ex::other_comparison(file, Batches{12, 0}, 2, named).empty());
  ex::record_run(file, "lenet by 24", 1, 12);
  CHECK(ex::other_comparison(file, Batches{12, 0}, 2, named) ==
        "the file has a run of one rank with the same samples of all ranks in a batch: --global-batch 24 compares with that");
  CHECK(ex::other_comparison(file, Batches{24, 0}, 2, named).empty());
  CHECK(ex::other_comparison(file, Batches{12, 24}, 2, named).empty());
}

TEST_CASE("Lines with fewer numbers, as an older program wrote them, are passed over", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "times.csv";
  ex::record_run(file, "lenet", 1, 10, {2, 8});
  const ex::RecordedRun own{2, 5, {1, 4, 0.5}};
  ex::record_run(file, "lenet", own.ranks, own.seconds, own.more);
  const auto runs = ex::runs_with(own, file, "lenet");
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].more == own.more);
}
