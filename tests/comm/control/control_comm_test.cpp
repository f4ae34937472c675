// SPDX-License-Identifier: Apache-2.0
// The coordinator over threads, and over real processes that meet at an address, in a file or by their launcher's variables.
#include "skein/comm/control/control_comm.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../../support/collectives.hpp"
#include "../../support/processes.hpp"
#include "../../support/temporary_folder.hpp"
#include "skein/comm/self/self_comm.hpp"
#include "skein/comm/thread/spawn.hpp"

namespace sk = skein;
namespace control = skein::comm::control;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

static_assert(sk::Communicator<sk::ControlComm> && sk::AllReduces<sk::ControlComm> && sk::Broadcasts<sk::ControlComm> &&
              sk::AllGathers<sk::ControlComm>);
static_assert(sk::Splits<sk::ControlComm> && sk::Synchronizes<sk::ControlComm>);

namespace {
sk::MeetOptions within(double seconds, std::string job = "") {
  sk::MeetOptions o;
  o.deadline = seconds;
  o.job = std::move(job);
  return o;
}
/// A port that was free a moment ago.
int free_port() { return control::Listener({"127.0.0.1", 0}).port(); }
std::string at(int port) { return "127.0.0.1:" + std::to_string(port); }

/// Every collective of the host that a coordinator has, against its serial twin.
template <class Comm> void everything(Comm& world) {
  using namespace collectives;
  const int n = world.size(), me = world.rank();
  const auto ranks = static_cast<std::size_t>(n);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
    std::vector<float> data = values<float>(me, count);
    world.all_reduce(data, sk::Mean{});
    require(same_bits(data, reduced<float>(n, count, sk::Mean{})), "all_reduce");
    data = values<float>(me, count);
    world.reduce(data, sk::Sum{}, n - 1);
    require(same_bits(data, me == n - 1 ? reduced<float>(n, count, sk::Sum{}) : values<float>(me, count)), "reduce");
    data = values<float>(me, count);
    world.broadcast(data, n - 1);
    require(same_bits(data, values<float>(n - 1, count)), "broadcast");
    std::vector<float> all(count * ranks), wanted, part(count);
    world.all_gather(values<float>(me, count), all);
    for (int r = 0; r < n; ++r)
      for (const float x : values<float>(r, count)) wanted.push_back(x);
    require(same_bits(all, wanted), "all_gather");
    world.reduce_scatter(values<float>(me, count * ranks), part, sk::Sum{});
    const std::vector<float> sum = reduced<float>(n, count * ranks, sk::Sum{});
    require(same_bits(part, std::vector<float>(sum.begin() + static_cast<long>(count) * me,
                                               sum.begin() + static_cast<long>(count) * (me + 1))),
            "reduce_scatter");
    std::vector<float> send, swapped(count * ranks);
    wanted.clear();
    for (int r = 0; r < n; ++r) {
      for (const float x : values<float>(me * 100 + r, count)) send.push_back(x);
      for (const float x : values<float>(r * 100 + me, count)) wanted.push_back(x);
    }
    world.all_to_all(send, swapped);
    require(same_bits(swapped, wanted), "all_to_all");
  }
  require(world.all_reduce(me + 1) == n * (n + 1) / 2, "one int");
  std::vector<double> user = values<double>(me, 33);
  world.all_reduce(user, Weighted{3});
  require(same_bits(user, reduced<double>(n, 33, Weighted{3})), "a user's function");
  const std::vector<std::string> texts = world.all_gather(std::string(static_cast<std::size_t>(me), 'x'));
  for (int r = 0; r < n; ++r) require(texts[static_cast<std::size_t>(r)].size() == static_cast<std::size_t>(r), "texts");
  world.assert_same("the plan", "equal on all");
  auto half = world.split(me % 2, -me);
  const int members = (n + 1 - me % 2) / 2;
  require(half.size() == members && half.rank() == members - 1 - me / 2, "split places a rank wrongly");
  int wanted_sum = 0;
  for (int r = me % 2; r < n; r += 2) wanted_sum += r;
  require(half.all_reduce(me) == wanted_sum, "all_reduce in a part");
  auto quarter = half.split(half.rank());
  require(quarter.size() == 1 && quarter.all_reduce(7) == 7, "a part of one");
  world.barrier();
}
}  // namespace

TEST_CASE("every collective of a coordinator equals its serial twin over threads") {
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& threads) {
    sk::ControlComm world = sk::ControlComm::over(threads, 30);
    everything(world);
  }));
}

TEST_CASE("a deadline that is no time is refused before the ranks meet, and after") {
  for (const double deadline : {0.0, -1.0, std::nan("")}) {
    CHECK_THROWS_WITH(sk::ControlComm::from_address(at(free_port()), 0, 2, within(deadline)),
                      Contains("a meeting of ranks: a deadline is seconds, more than 0"));
    sk::ControlComm world = sk::ControlComm::from_address(at(free_port()), 0, 1, within(20));
    CHECK_THROWS_WITH(world.set_deadline(deadline), Contains("set_deadline: a deadline is seconds, more than 0"));
  }
}

TEST_CASE("processes meet at an address, in a file, and by their launcher's variables") {
  const int ranks = GENERATE(1, 2, 4);
  const int way = GENERATE(0, 1, 2);
  const support::TemporaryFolder folder;
  const std::string path = folder / "meeting";
  const int port = free_port();
  const auto said = support::run_processes(ranks, [&](int r) {
    std::this_thread::sleep_for(std::chrono::milliseconds(r == 0 ? 200 : 10 * r));  // rank 0 comes last
    sk::ControlComm world =
        way == 0   ? sk::ControlComm::from_address(at(port), r, ranks, within(20, "a job"))
        : way == 1 ? sk::ControlComm::from_file(path, r, ranks, within(20))
                   : sk::ControlComm::from_environment(within(20), [&](const char* name) -> std::optional<std::string> {
                       const std::map<std::string, std::string> all{{"RANK", std::to_string(r)},
                                                                    {"WORLD_SIZE", std::to_string(ranks)},
                                                                    {"MASTER_ADDR", "127.0.0.1"},
                                                                    {"MASTER_PORT", std::to_string(port)}};
                       const auto found = all.find(name);
                       return found == all.end() ? std::nullopt : std::optional<std::string>(found->second);
                     });
    everything(world);
    return std::string("fine");
  });
  for (const std::string& s : said) CHECK(s == "fine");
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a rank that never comes to the meeting is named on all that came") {
  const int port = free_port();
  const auto said = support::run_processes(4, [&](int r) -> std::string {
    if (r == 2) return "stayed away";
    const sk::ControlComm world = sk::ControlComm::from_address(at(port), r, 4, within(3));
    return "met";
  });
  CHECK(said[2] == "stayed away");
  for (const int r : {0, 1, 3})
    CHECK_THAT(said[static_cast<std::size_t>(r)], Equals("rank 2 did not arrive at " + at(port) + " within 3 s"));
}

TEST_CASE("without rank 0 the others say where they looked") {
  const int port = free_port();
  const support::TemporaryFolder folder;
  const std::string path = folder / "meeting";
  CHECK_THAT(support::run_processes(
                 1, [&](int) -> std::string { return sk::ControlComm::from_address(at(port), 1, 2, within(0.3)), "met"; })[0],
             Equals("rank 1 did not find rank 0 at " + at(port) +
                    " within 0.3 s (Connection refused): does rank 0 run, and may this machine reach it"));
  CHECK_THAT(support::run_processes(
                 1, [&](int) -> std::string { return sk::ControlComm::from_file(path, 1, 2, within(0.3)), "met"; })[0],
             Contains("rank 1 did not find rank 0 at " + path + " within 0.3 s (the file is not there)"));
}

TEST_CASE("ranks that disagree about their number, or share one, are told so") {
  const std::string differ = "rank 2 believes in 4 ranks, rank 0 in 3: start all with the same number";
  std::vector<std::string> said(3);
  for (int trial = 0; trial < 5 && said != std::vector<std::string>(3, differ); ++trial) {
    const int port = free_port();
    said = support::run_processes(3, [&](int r) -> std::string {
      std::this_thread::sleep_for(std::chrono::milliseconds(r == 2 ? 300 : 0));  // rank 1 is there by then, but on a busy machine
      return sk::ControlComm::from_address(at(port), r, r == 2 ? 4 : 3, within(3)), "met";
    });
  }
  CHECK(said == std::vector<std::string>(3, differ));
  const int other = free_port();
  said = support::run_processes(3, [&](int r) -> std::string {
    std::this_thread::sleep_for(std::chrono::milliseconds(150 * r));
    return sk::ControlComm::from_address(at(other), r == 2 ? 1 : r, 3, within(10)), "met";
  });
  for (const std::string& s : said)
    CHECK(s == "two processes say that they are rank 1 of 3: each needs a number of its own, from 0");
  CHECK_THROWS_AS(sk::ControlComm::from_address(at(other), 3, 3), sk::ArgumentError);
  for (const char* wrong : {"", "here", "here:", ":1", "here:0", "here:70000", "a b:1"})
    CHECK_THROWS_AS(sk::ControlComm::from_address(wrong, 0, 1), sk::ArgumentError);
}

TEST_CASE("strangers on the port do not keep the ranks from meeting") {
  const int port = free_port();
  const auto stranger = [&](const std::string& bytes, bool stay) {
    return support::start_process([&port, bytes, stay]() -> std::string {
      std::string why;
      auto clock = sk::comm::Deadline::from_now(60);
      control::Descriptor d;
      for (int i = 0; i < 2000 && !d; ++i) {
        d = control::try_connect({"127.0.0.1", port}, 1, clock, why);
        if (!d) std::this_thread::sleep_for(10ms);
      }
      (void)control::write_all(d.get(), bytes, 1);
      if (stay) return std::this_thread::sleep_for(1s), "gone";
      char some[512];
      pollfd p{d.get(), POLLIN, 0};
      (void)::poll(&p, 1, 20000);
      const ssize_t n = ::recv(d.get(), some, sizeof some, 0);
      return n > 32 ? std::string(some + 32, static_cast<std::size_t>(n) - 32) : "closed";
    });
  };
  std::vector<support::Child> strangers;
  strangers.push_back(stranger("GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n", false));
  strangers.push_back(stranger(control::encode({control::Kind::Hello, 0, 0, 0, control::pack(control::Hello{1, 2, 12345, {}})}),
                               false));  // of another job
  strangers.push_back(stranger(control::encode({control::Kind::Hello, 0, 0, 0, "short"}), false));
  strangers.push_back(stranger(control::encode({control::Kind::Fail, 0, 0, 0, "I am the coordinator"}), false));
  strangers.push_back(stranger("", true));  // says nothing
  const auto rank = [&](int r) {
    return support::start_process([&port, r]() -> std::string {
      sk::ControlComm world = sk::ControlComm::from_address(at(port), r, 2, within(20, "ours"));
      return std::to_string(world.all_reduce(r + 1));
    });
  };
  const support::Child zero = rank(0);
  std::vector<std::string> heard;
  for (std::size_t i = 0; i < 4; ++i) heard.push_back(support::wait_for(strangers[i]));
  const support::Child one = rank(1);  // the strangers come first
  CHECK(support::wait_for(zero) == "3");
  CHECK(support::wait_for(one) == "3");
  CHECK(support::wait_for(strangers[4]) == "gone");
  CHECK_THAT(heard[0], Contains("refused: the other side speaks something else than skein's coordinator"));
  CHECK_THAT(heard[1], Contains("refused: " + at(port) + " belongs to another job"));
  CHECK(heard[2] == "closed");
  CHECK(heard[3] == "closed");
}

TEST_CASE("a rank that finds another server at the address says so") {
  const control::Listener listener({"127.0.0.1", 0});
  const support::Child child = support::start_process(
      [&]() -> std::string { return sk::ControlComm::from_address(at(listener.port()), 1, 2, within(3)), "met"; });
  std::vector<control::Descriptor> guests;
  pollfd ends{child.from, POLLIN, 0};
  while (::poll(&ends, 1, 0) == 0) {
    if (control::Descriptor d = listener.accept(); d) {
      (void)control::write_all(d.get(), "220 mail.somewhere.example ESMTP, welcome to our server\r\n", 1);
      guests.push_back(std::move(d));
    }
    std::this_thread::sleep_for(10ms);
  }
  CHECK_THAT(support::wait_for(child), Contains("answers, but the other side speaks something else than skein's coordinator"));
}

TEST_CASE("a process that is stopped while it writes goes on with the frame where it stood") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  const control::Descriptor reads(ends[0]), writes(ends[1]);
  constexpr std::size_t size = 8 << 20;  // more than a socket holds
  const support::Child child = support::start_process(
      [&]() -> std::string { return control::write_all(writes.get(), std::string(size, 'x'), 0.5) ? "written" : "given up"; });
  std::this_thread::sleep_for(200ms);
  ::kill(child.pid, SIGSTOP);
  std::this_thread::sleep_for(1s);
  ::kill(child.pid, SIGCONT);
  std::this_thread::sleep_for(50ms);  // it looks at its clock before anything is read
  std::size_t come = 0;
  for (std::vector<char> some(1 << 16); come < size;) {
    pollfd p{reads.get(), POLLIN, 0};
    if (::poll(&p, 1, 5000) <= 0) break;
    const ssize_t n = ::recv(reads.get(), some.data(), some.size(), 0);
    if (n <= 0) break;
    come += static_cast<std::size_t>(n);
  }
  CHECK(support::wait_for(child) == "written");
  CHECK(come == size);
}

TEST_CASE("a file that an earlier run left is not believed") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "meeting";
  const auto leave = [&](long long age, int port) {
    control::write_meeting(path, {{1, 2, 3, 4}, control::unix_seconds() - age, 2, {{"127.0.0.1", port}}});
  };
  leave(3600, free_port());  // by its time
  CHECK_THAT(support::run_processes(
                 1, [&](int) -> std::string { return sk::ControlComm::from_file(path, 1, 2, within(0.3)), "met"; })[0],
             Contains("the file was written 360") && Contains(" s before this rank started: an earlier run left it"));
  leave(0, free_port());  // a moment ago: nobody is there, and rank 0 replaces it
  auto said = support::run_processes(2, [&](int r) -> std::string {
    if (r == 0) std::this_thread::sleep_for(400ms);
    sk::ControlComm world = sk::ControlComm::from_file(path, r, 2, within(10));
    return std::to_string(world.all_reduce(1));
  });
  CHECK(said == std::vector<std::string>{"2", "2"});
  // The port of the old file belongs to another run's coordinator now: its secret is another.
  const int port = free_port();
  const support::Child other =
      support::start_process([&]() -> std::string { return sk::ControlComm::from_address(at(port), 0, 2, within(6)), "met"; });
  std::string why;
  auto clock = sk::comm::Deadline::from_now(60);
  while (!control::try_connect({"127.0.0.1", port}, 1, clock, why)) std::this_thread::sleep_for(10ms);
  leave(0, port);
  CHECK_THAT(support::run_processes(
                 1, [&](int) -> std::string { return sk::ControlComm::from_file(path, 1, 2, within(2.5)), "met"; })[0],
             Contains("refused: " + at(port) + " belongs to another job"));
  CHECK_THAT(support::wait_for(other), Contains("rank 1 did not arrive"));
}

TEST_CASE("a meeting's file is read with care") {
  const std::string good = control::to_text({{1, 255}, 1700000000, 4, {{"10.0.0.3", 4000}, {"::1", 4001}}});
  const control::MeetingFile m = control::parse_meeting(good, "f");
  CHECK(m.secret == control::Nonce{1, 255});
  CHECK(m.size == 4);
  REQUIRE(m.addresses.size() == 2);
  CHECK(m.addresses[1].text() == "[::1]:4001");
  const auto refused = [](const std::string& text) -> std::string {
    try {
      (void)control::parse_meeting(text, "f");
    } catch (const sk::FileError& e) { return e.what(); }
    return "";
  };
  for (std::size_t cut = 0; cut < good.size(); ++cut) CHECK_FALSE(refused(good.substr(0, cut)).empty());
  CHECK_THAT(refused("something"), Contains("its first line"));
  CHECK_THAT(refused(good + "more"), Contains("something follows"));
  CHECK_THAT(refused("skein meeting 1\nnonce 1\n"), Contains("its first line"));
  const std::string begin = "skein meeting 2\nsecret " + control::to_hex(m.secret) + "\n";
  CHECK_THAT(refused("skein meeting 2\nsecret 12\n"), Contains("the line 'secret', with 32 hexadecimal digits, is missing"));
  CHECK_THAT(refused(begin + "time -1\n"), Contains("holds no number"));
  CHECK_THAT(refused(begin + "time 99999999999999999999\n"), Contains("too large"));
  CHECK_THAT(refused(begin + "time 1\nsize 99999999\n"), Contains("too large"));
  CHECK_THAT(refused(begin + "time 1\nsize 1\nend\n"), Contains("no address"));
  CHECK_THAT(refused(begin + "time 1\nsize 1\nat nowhere\nend\n"), Contains("is no address"));
  CHECK_THAT(refused(std::string(20000, 'x')), Contains("longer than 16 kB"));
}

TEST_CASE("a part that another is assigned to has been left: who calls it is told at once") {
  std::string text;
  try {
    sk::spawn(2, [](sk::ThreadComm& threads) {
      sk::SelfComm alone;
      sk::ControlComm world = sk::ControlComm::over(threads, 20), part = world.split(0);
      if (threads.rank() == 1) part = sk::ControlComm::over(alone, 20);
      part.barrier();
      world.barrier();
    });
  } catch (const sk::CommError& e) { text = e.what(); }
  CHECK_THAT(text, Contains("barrier (call 0): rank 1 returned and will not arrive"));
}

TEST_CASE("a rank that does not come to a call is named on every rank; one that is killed at once") {
  const int port = free_port();
  const support::TemporaryFolder folder;
  const std::string given_up = folder / "rank 0 has given up";
  auto said = support::run_processes(3, [&](int r) -> std::string {
    sk::ControlComm world = sk::ControlComm::from_address(at(port), r, 3, within(10));
    world.barrier();
    world.set_deadline(2.5);
    std::string text;
    try {
      for (int i = 0; r == 1 && i < 2000 && !std::ifstream(given_up); ++i) std::this_thread::sleep_for(10ms);
      std::vector<double> values(7);
      world.all_reduce(values);
    } catch (const sk::CommError& e) { text = e.what(); }
    if (r == 0) std::ofstream{given_up};
    return text;
  });
  for (const std::string& s : said) CHECK(s == "all_reduce(Sum) of 7 double (call 1): rank 1 did not arrive within 2.5 s");
  const int other = free_port();
  const int dies = GENERATE(0, 2);
  const double before = control::now();
  said = support::run_processes(3, [&](int r) -> std::string {
    sk::ControlComm world = sk::ControlComm::from_address(at(other), r, 3, within(60));
    world.barrier();
    if (r == dies) ::_exit(3);
    return world.barrier(), "fine";
  });
  CHECK(control::now() - before < 20);
  for (int r = 0; r < 3; ++r)
    if (r != dies)
      CHECK_THAT(said[static_cast<std::size_t>(r)],
                 Contains(dies == 0 ? "rank 0, whose process holds the coordinator, is gone"
                                    : "rank 2 is gone: its process ended (its own output says why), or was killed"));
}

TEST_CASE("an exception of one rank ends all ranks; a goodbye is told to who waits") {
  const int port = free_port();
  auto said = support::run_processes(2, [&](int r) -> std::string {
    sk::ControlComm world = sk::ControlComm::from_address(at(port), r, 2, within(30));
    if (r == 1) throw std::runtime_error("no data here");
    return world.barrier(), "fine";
  });
  CHECK(said[1] == "no data here");
  CHECK_THAT(said[0], Equals("rank 1 failed: an exception left the scope of its communicator"));
  const int other = free_port();
  said = support::run_processes(2, [&](int r) -> std::string {
    sk::ControlComm world = sk::ControlComm::from_address(at(other), r, 2, within(30));
    if (r == 1) return "returned";
    return world.barrier(), "fine";
  });
  CHECK(said[1] == "returned");
  CHECK_THAT(said[0], Equals("barrier (call 0): rank 1 returned and will not arrive"));
}

TEST_CASE("calls that differ are told apart on every rank") {
  std::atomic<int> told{0};
  sk::spawn(3, [&](sk::ThreadComm& threads) {
    sk::ControlComm world = sk::ControlComm::over(threads, 20);
    std::vector<float> data(world.rank() == 1 ? 7 : 8);
    try {
      world.all_reduce(data);
    } catch (const sk::CommError& e) {
      told += std::string(e.what()) ==
              "collective call 0 differs between ranks: ranks 0, 2: all_reduce(Sum) of 8 float; rank 1: all_reduce(Sum) of 7 "
              "float. Every rank must make the same "
              "calls in the same order";
    }
  });
  CHECK(told == 3);
}

TEST_CASE("the meeting place by the environment") {
  using Variables = std::map<std::string, std::string>;
  const auto of = [](Variables v) {
    return control::rendezvous_address([v = std::move(v)](const char* name) -> std::optional<std::string> {
      const auto found = v.find(name);
      return found == v.end() ? std::nullopt : std::optional<std::string>(found->second);
    });
  };
  const auto torchrun = of({{"RANK", "3"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "node1"},
                            {"MASTER_PORT", "29500"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                            {"TORCHELASTIC_RUN_ID", "none"}});
  CHECK(torchrun.rank == 3);
  CHECK(torchrun.size == 8);
  CHECK(torchrun.address.text() == "node1:29501");  // torchrun's own store has 29500
  CHECK(of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}}).address.text() == "a:29500");
  const auto slurm = of({{"SLURM_PROCID", "2"},
                         {"SLURM_LOCALID", "0"},
                         {"SLURM_NTASKS", "4"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_TASKS_PER_NODE", "2(x2)"},
                         {"SLURM_JOB_NODELIST", "gpu[03-04]"},
                         {"SLURM_JOB_ID", "4711"}});
  CHECK(slurm.address.text() == "gpu03:" + std::to_string(20000 + 4711 * 4 % 1590 * 8));
  CHECK(slurm.ports == 8);
  CHECK(of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).size == 1);
  const auto mpirun = of({{"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "2"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                          {"OMPI_MCA_ess_base_jobid", "4242"},
                          {"TMPDIR", "/scratch"}});
  CHECK(mpirun.fallback == "/scratch/skein-" + std::to_string(::geteuid()));
  CHECK_THAT(mpirun.file, Catch::Matchers::StartsWith("skein-meeting-"));
  const auto of_step = [&](const char* step,
                           bool by_slurm) {  // torchrun of a step for each node, or ranks that Slurm has numbered
    Variables v{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", step}};
    if (by_slurm) v.insert({{"SLURM_PROCID", "1"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "2"}});
    else v.insert({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", step}});
    return of(std::move(v)).job;
  };
  CHECK(of_step("0", false) == of_step("1", false));
  CHECK(of_step("0", true) != of_step("1", true));
  const auto refused = [&](Variables v) -> std::string {
    try {
      (void)of(std::move(v));
    } catch (const sk::ArgumentError& e) { return e.what(); }
    return "";
  };
  CHECK_THAT(refused({}), Contains("does not say rank and size"));
  CHECK_THAT(refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
             Contains("nothing says where rank 0 is: set MASTER_ADDR and MASTER_PORT"));
  CHECK_THAT(refused({{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"OMPI_MCA_ess_base_jobid", "4242"}}),
             Contains("4 ranks of Open MPI, but nothing says where rank 0 is"));
  CHECK_THAT(refused({{"PMI_RANK", "0"},  // two such jobs of one allocation would meet in one file
                      {"PMI_SIZE", "2"},
                      {"MPI_LOCALRANKID", "0"},
                      {"MPI_LOCALNRANKS", "2"},
                      {"SLURM_JOB_ID", "7"}}),
             Contains("nothing says where rank 0 is"));
  CHECK_THAT(refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}), Contains("MASTER_PORT is ''"));
}

namespace {
/// Takes rank 2's place at the coordinator, and answers the first call with the right signature and `payload` bytes of values.
support::Child impostor(int port, sk::comm::Signature signature, std::size_t payload) {
  return support::start_process([port, signature, payload]() -> std::string {
    const std::unique_ptr<control::Client> client = control::meet_at(at(port), {2, 3, control::key_of("a job"), 10});
    std::string bytes(sizeof signature, '\0');
    std::memcpy(bytes.data(), &signature, sizeof signature);
    (void)client->exchange(0, 0, bytes + std::string(payload, 'x'));
    (void)client->exchange(0, 1, bytes);  // stays until the others have decided
    return "fine";
  });
}
/// What ranks 0 and 1 say when the impostor's values have this many bytes.
std::vector<std::string> met_by(sk::comm::Signature signature, std::size_t payload,
                                const std::function<void(sk::ControlComm&)>& call) {
  const int port = free_port();
  const support::Child stranger = impostor(port, signature, payload);
  const auto said = support::run_processes(2, [&](int r) -> std::string {
    sk::ControlComm world = sk::ControlComm::from_address(at(port), r, 3, within(10, "a job"));
    return call(world), "used them";
  });
  (void)support::wait_for(stranger);
  return said;
}
}  // namespace

TEST_CASE("a rank whose values are fewer or more bytes than its call says is named, and nothing of it is used") {
  using sk::comm::Collective, sk::comm::Signature;
  const std::size_t bytes = GENERATE(0, 5, 3999, 4001, 100000);
  const Signature sum{Collective::AllReduce, 1, 1, 0, 0, 4, 1000, 0}, to_root{Collective::Reduce, 1, 1, 0, 0, 4, 1000, 0};
  const Signature gather{Collective::AllGather, 1, 0, 0, 0, 4, 1000, 0}, from_2{Collective::Broadcast, 1, 0, 0, 2, 4, 1000, 0};
  const std::string end = " (call 0): rank 2 gave " + std::to_string(bytes) +
                          " bytes of values, and its call has 4000: it is no rank of this program";
  std::vector<float> v(1000), all(3000);
  for (const std::string& s : met_by(sum, bytes, [&](sk::ControlComm& w) { w.all_reduce(v); }))
    CHECK_THAT(s, Equals("all_reduce(Sum) of 1000 float" + end));
  for (const std::string& s : met_by(to_root, bytes, [&](sk::ControlComm& w) { w.reduce(v); }))
    CHECK_THAT(s, Equals("reduce(Sum) of 1000 float to rank 0" + end));
  for (const std::string& s : met_by(gather, bytes, [&](sk::ControlComm& w) { w.all_gather(v, all); }))
    CHECK_THAT(s, Equals("all_gather of 1000 float" + end));
  for (const std::string& s : met_by(from_2, bytes, [&](sk::ControlComm& w) { w.broadcast(v, 2); }))
    CHECK_THAT(s, Equals("broadcast of 1000 float from rank 2" + end));
}

TEST_CASE("values that come with the call of another rank are refused: a broadcast's root alone gives some") {
  const sk::comm::Signature from_0{sk::comm::Collective::Broadcast, 1, 0, 0, 0, 4, 1000, 0};
  std::vector<float> v(1000);
  for (const std::string& s : met_by(from_0, 12, [&](sk::ControlComm& w) { w.broadcast(v, 0); }))
    CHECK_THAT(s, Equals("broadcast of 1000 float from rank 0 (call 0): rank 2 gave 12 bytes of values, and its call has 0: it "
                         "is no rank of this program"));
}

TEST_CASE("a call that no rank of this library makes is refused by a sentence") {
  sk::comm::Signature strange{static_cast<sk::comm::Collective>(200), 255, 255, 0, 0, 4, 1000, 0};
  std::vector<float> v(1000);
  for (const std::string& s : met_by(strange, 4000, [&](sk::ControlComm& w) { w.all_reduce(v); }))
    CHECK_THAT(s, Contains("rank 2: a call that this library does not know"));
}

TEST_CASE("the parts of a split have numbers of their own, and there are not too many") {
  std::vector<sk::comm::SplitKey> keys;
  for (int r = 1023; r >= 0; --r) keys.push_back({3 * r, 0, r});
  std::set<std::uint32_t> numbers;
  for (const sk::comm::SplitKey& k : keys) numbers.insert(sk::comm::group_number(5, keys, k.color));
  CHECK(numbers.size() == 1024);
  for (const std::uint64_t ticket : {0ull, (1ull << 22) - 1, 1ull << 22, 3ull << 22})  // 0 is the world's number
    CHECK(sk::comm::group_number(ticket, keys, 0) >= 1024);
  keys.push_back({4, 0, 1024});
  for (const int color : {0, 4, 3069}) CHECK_THROWS_WITH(sk::comm::group_number(5, keys, color), Contains("1025 colours"));
}

TEST_CASE("a rank that waits in a part which another has ended is told at once") {
  const int port = free_port();
  const auto said = support::run_processes(2, [&](int r) -> std::string {
    sk::ControlComm world = sk::ControlComm::from_address(at(port), r, 2, within(5));
    std::optional<sk::ControlComm> part = world.split(0);
    if (r == 1) part.reset();
    return (part ? *part : world).barrier(), "met";
  });
  for (const std::string& s : said) CHECK_THAT(s, Contains("barrier (call 0): rank 1 returned and will not arrive"));
}

TEST_CASE("a rank remembers nothing of a part that all have ended") {
  CHECK_NOTHROW(sk::spawn(2, [](sk::ThreadComm& threads) {
    sk::ControlComm world = sk::ControlComm::over(threads, 30);
    auto part = std::make_optional(world.split(0));
    auto& client = world.engine().client();
    const std::uint32_t group = part->engine().group();
    if (threads.rank() == 1) part.reset();
    world.barrier();
    const bool one = client.left(group) == (threads.rank() == 0 ? 1u : 0u);
    part.reset();
    world.barrier();
    if (!one || client.left(group) != 0) throw std::runtime_error("it is remembered");
    if (!client.has_left(group, 1 - threads.rank())) throw std::runtime_error("who has left is there again");
  }));
}

TEST_CASE("a rank may wait without an end: a deadline that is infinite") {
  CHECK_NOTHROW(sk::spawn(2, [](sk::ThreadComm& threads) {
    sk::ControlComm world = sk::ControlComm::over(threads, 30);
    world.set_deadline(std::numeric_limits<double>::infinity());
    if (world.all_reduce(1) != 2) throw std::runtime_error("a wrong sum");
  }));
}

TEST_CASE("an infinite deadline keeps no coordinator that has no ranks to wait for") {
  std::vector<control::Descriptor> ranks, others;
  for (int r = 0; r < 3; ++r) {
    auto [one, other] = control::connected_pair();
    ranks.push_back(std::move(one));
    others.push_back(std::move(other));
  }
  const auto begin = std::chrono::steady_clock::now();
  {
    control::Server server(std::move(ranks));
    others[1] = {};  // its process has ended
    server.finish(std::numeric_limits<double>::infinity());
  }
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
}

TEST_CASE("a rank whose frame the coordinator cannot read is told so, as the others are") {
  const int port = free_port();
  const support::Child strange = support::start_process([port]() -> std::string {
    const std::unique_ptr<control::Client> client = control::meet_at(at(port), {1, 2, control::key_of("a job"), 25});
    return client->exchange(77, 0, "of a group that nobody opened"), "an answer";
  });
  const double before = control::now();
  const auto said = support::run_processes(1, [&](int) -> std::string {
    sk::ControlComm world = sk::ControlComm::from_address(at(port), 0, 2, within(25, "a job"));
    return world.barrier(), "met";
  });
  CHECK_THAT(said[0], Equals("the coordinator cannot understand rank 1: the coordinator knows no group 77"));
  CHECK_THAT(support::wait_for(strange), Equals(said[0]));
  CHECK(control::now() - before < 20);
}

TEST_CASE("what an exchange has brought is given, though another rank fails right after it") {
  auto [end, coordinator] = control::connected_pair();
  std::thread peer([&coordinator = coordinator] {
    pollfd p{coordinator.get(), POLLIN, 0};
    (void)::poll(&p, 1, 60000);
    const std::string both = control::encode({control::Kind::Gathered, 0, 0, 0, "the values"}) +
                             control::encode({control::Kind::Fail, 0, 0, 0, "rank 0 failed"});
    (void)control::write_all(coordinator.get(), both, 60);
  });
  control::Client client(std::move(end), 1, 2, 60, nullptr);
  std::string came, then;
  try {
    came = client.exchange(0, 0, "mine");
    (void)client.exchange(0, 1, "mine");
  } catch (const sk::CommError& e) { then = e.what(); }
  peer.join();
  CHECK(came == "the values");
  CHECK(then == "rank 0 failed");
}
