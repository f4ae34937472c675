// SPDX-License-Identifier: Apache-2.0
// Strangers at a meeting of ranks: what they try, and that the ranks meet all the same. Real processes and sockets.
#include "skein/comm/control/rendezvous.hpp"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../../support/processes.hpp"
#include "../../support/temporary_folder.hpp"
#include "skein/comm/control/control_comm.hpp"
#include "skein/comm/control/file.hpp"

namespace sk = skein;
namespace control = skein::comm::control;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {
const std::string secret = "4f1d0c8a9be7365277b2";

sk::MeetOptions within(double seconds, std::string job = "", std::string with = "") {
  sk::MeetOptions o;
  o.deadline = seconds;
  o.job = std::move(job);
  o.secret = std::move(with);
  return o;
}
int free_port() { return control::Listener({"127.0.0.1", 0}).port(); }
/// Two that differ: both are listened to until both are known.
std::array<int, 2> free_ports() {
  const control::Listener one({"127.0.0.1", 0}), other({"127.0.0.1", 0});
  return {one.port(), other.port()};
}
std::string at(int port) { return "127.0.0.1:" + std::to_string(port); }

/// Two ranks and a secret; the second comes when `before_second` has returned. "3" each where they meet. Rank 0 also says what it
/// cost.
std::vector<std::string> two_ranks(int port, const std::function<void()>& before_second,
                                   std::atomic<double>* processor_seconds = nullptr) {
  std::vector<support::Child> ranks;
  int cost[2];
  (void)!::pipe(cost);
  for (const int r : {0, 1}) {
    if (r == 1) before_second();
    ranks.push_back(support::start_process([&]() -> std::string {
      sk::ControlComm world = sk::ControlComm::from_address(at(port), r, 2, within(30, "", secret));
      rusage used{};
      ::getrusage(RUSAGE_SELF, &used);
      const double seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                             1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
      if (r == 0) (void)!::write(cost[1], &seconds, sizeof seconds);
      return std::to_string(world.all_reduce(r + 1));
    }));
  }
  std::vector<std::string> said;
  for (const support::Child& c : ranks) said.push_back(support::wait_for(c));
  double seconds = 0;
  ::close(cost[1]);
  if (::read(cost[0], &seconds, sizeof seconds) == sizeof seconds && processor_seconds) *processor_seconds = seconds;
  ::close(cost[0]);
  return said;
}
const std::vector<std::string> met{"3", "3"};

/// A connection to the port, as soon as somebody listens there.
control::Descriptor connected(int port) {
  std::string why;
  auto clock = sk::comm::Deadline::from_now(60);
  for (int i = 0; i < 2000; ++i) {
    if (control::Descriptor d = control::try_connect({"127.0.0.1", port}, 1, clock, why); d) return d;
    std::this_thread::sleep_for(10ms);
  }
  return {};
}
}  // namespace

TEST_CASE("who does not know the secret is no rank, whatever it says; nor is a program that has taken the port") {
  const int port = free_port();
  const auto impostor = support::start_process([port]() -> std::string {
    // It has seen a Hello pass, so it knows the tag; and it has no secret.
    const control::Descriptor d = connected(port);
    control::Hello hello{1, 2, control::key_of("", secret).tag(), control::random_nonce()};
    (void)control::write_all(d.get(), control::encode({control::Kind::Hello, 0, 0, 0, control::pack(hello)}), 1);
    control::FrameReader reader;
    auto clock = sk::comm::Deadline::from_now(60);
    const auto heard = control::detail::read_frame(d, reader, 20, clock);
    if (!heard || heard->kind != control::Kind::Heard) return "not asked";
    const auto answer = control::unpack_heard(heard->payload);
    const control::Digest guess = control::proof_of(control::key_of(""), control::Side::rank, hello, answer->nonce);
    // The coordinator's own proof sent back, and a guess.
    for (const control::Digest& proof : {answer->proof, guess})
      (void)control::write_all(d.get(), control::encode({control::Kind::Proof, 0, 0, 0, control::pack(proof)}), 1);
    const auto said = control::detail::read_frame(d, reader, 20, clock);
    return said ? said->payload : "closed";
  });
  const auto without =
      support::start_process([port]() -> std::string { return sk::ControlComm::from_address(at(port), 1, 2, within(3)), "met"; });
  const auto they_end = [&] {
    CHECK_THAT(support::wait_for(impostor), Equals("refused: " + at(port) + " belongs to a job with another secret"));
    CHECK_THAT(support::wait_for(without), Contains("refused: " + at(port) + " belongs to another job"));
  };
  CHECK(two_ranks(port, they_end) == met);
  // A squatter on the port that answers as a coordinator would, but has no key.
  const control::Listener listener({"127.0.0.1", 0});
  const auto rank = support::start_process(
      [&]() -> std::string { return sk::ControlComm::from_address(at(listener.port()), 1, 2, within(3, "", secret)), "met"; });
  pollfd ends{rank.from, POLLIN, 0};
  while (::poll(&ends, 1, 0) == 0) {
    if (const control::Descriptor d = listener.accept(); d)
      (void)control::write_all(
          d.get(), control::encode({control::Kind::Heard, 0, 0, 0, control::pack(control::Heard{control::random_nonce(), {}})}),
          1);
    std::this_thread::sleep_for(10ms);
  }
  CHECK_THAT(support::wait_for(rank), Contains("answers, but cannot prove that it is of this job"));
}

TEST_CASE("a secret that is too short is refused") {
  CHECK_THROWS_WITH(sk::ControlComm::from_address("127.0.0.1:4000", 0, 1, within(1, "", "short")), Contains("give 16 or more"));
}

TEST_CASE("the secret never travels") {
  const std::array<int, 2> ports = free_ports();
  const int port = ports[0], before = ports[1];
  // Between the two, all bytes are kept.
  const auto between = support::start_process([=]() -> std::string {
    const control::Listener listener({"127.0.0.1", before});
    control::Descriptor rank;
    for (int i = 0; i < 2000 && !rank; ++i) rank = listener.accept(), std::this_thread::sleep_for(10ms);
    const control::Descriptor coordinator = connected(port);
    std::string seen;
    for (const double end = control::now() + 20; control::now() < end;) {
      bool open = true;
      for (const auto& [from, to] : {std::pair(rank.get(), coordinator.get()), std::pair(coordinator.get(), rank.get())}) {
        char some[4096];
        const ssize_t n = ::recv(from, some, sizeof some, 0);
        if (n == 0) open = false;
        if (n <= 0) continue;
        seen.append(some, static_cast<std::size_t>(n));
        (void)control::write_all(to, std::string(some, static_cast<std::size_t>(n)), 1);
      }
      if (!open) break;
      std::this_thread::sleep_for(1ms);
    }
    const control::Digest key = control::key_of("", secret).bytes;
    const bool found = seen.find(secret) != std::string::npos ||
                       seen.find(std::string(reinterpret_cast<const char*>(key.data()), key.size())) != std::string::npos;
    return found ? "the secret" : "no secret in " + std::to_string(seen.size() > 200) + " lot";
  });
  const auto said = support::run_processes(2, [&](int r) -> std::string {
    sk::ControlComm world = sk::ControlComm::from_address(at(r == 0 ? port : before), r, 2, within(20, "", secret));
    return std::to_string(world.all_reduce(r + 1));
  });
  CHECK(said == met);
  CHECK(support::wait_for(between) == "no secret in 1 lot");
}

TEST_CASE("a thousand silent connections do not keep the ranks from meeting, and cost no processor time") {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const long silent = std::min<long>(1000, static_cast<long>(files.rlim_cur) - 50);
  const int port = free_port();
  int all_here[2];
  REQUIRE(::pipe(all_here) == 0);
  const auto flood = support::start_process([=]() -> std::string {
    std::vector<control::Descriptor> all;
    for (long i = 0; i < silent; ++i) all.push_back(connected(port));
    (void)!::write(all_here[1], "x", 1);
    std::this_thread::sleep_for(1500ms);
    return "gone";
  });
  const auto second_later = [&] {
    pollfd p{all_here[0], POLLIN, 0};
    (void)::poll(&p, 1, 20000);
    std::this_thread::sleep_for(1s);
  };
  std::atomic<double> cost{0};
  CHECK(two_ranks(port, second_later, &cost) == met);
  ::close(all_here[0]), ::close(all_here[1]);
  CHECK(cost < 0.6);  // a poll that returns at once would take the whole second
  CHECK(support::wait_for(flood) == "gone");
}

TEST_CASE("guests that send a byte now and then are shown out") {
  const int port = free_port();
  std::vector<support::Child> slow;
  for (int i = 0; i < 3; ++i)
    slow.push_back(support::start_process([=]() -> std::string {
      const control::Descriptor d = connected(port);
      const std::string hello = control::encode({control::Kind::Hello, 0, 0, 0, control::pack(control::Hello{1, 2, 3, {}})});
      for (int sent = 0; sent < 40; ++sent) {
        if (!control::is_open(d) || !control::write_all(d.get(), hello.substr(static_cast<std::size_t>(sent), 1), 1))
          return "shown out";
        std::this_thread::sleep_for(200ms);
      }
      return "still here";
    }));
  CHECK(two_ranks(port, [] { std::this_thread::sleep_for(5600ms); }) == met);
  for (const support::Child& c : slow) CHECK(support::wait_for(c) == "shown out");
}

TEST_CASE("the ranks meet although rank 0 stood still for seven seconds of the deadline") {
  const int port = free_port();
  const auto rank = [&](int r) {
    return support::start_process([=]() -> std::string {
      sk::ControlComm world = sk::ControlComm::from_address(at(port), r, 2, within(30, "", secret));
      return std::to_string(world.all_reduce(r + 1));
    });
  };
  const support::Child zero = rank(0);
  (void)connected(port);
  ::kill(zero.pid, SIGSTOP);
  const support::Child one = rank(1);
  std::this_thread::sleep_for(7s);
  ::kill(zero.pid, SIGCONT);
  CHECK(support::wait_for(zero) == "3");
  CHECK(support::wait_for(one) == "3");
}

TEST_CASE("ranks that were stopped while they met, for longer than the deadline, go on meeting") {
  const auto ports = free_ports();
  const auto rank = [&](int r, int size, int port) {
    return support::start_process([=]() -> std::string {
      sk::ControlComm world = sk::ControlComm::from_address(at(port), r, size, within(4, "", secret));
      return std::to_string(world.all_reduce(r + 1));
    });
  };
  const support::Child zero = rank(0, 3, ports[0]);
  (void)connected(ports[0]);
  const support::Child one = rank(1, 3, ports[0]), early = rank(1, 2, ports[1]);  // one has met rank 0, the other looks for it
  std::this_thread::sleep_for(300ms);
  support::stop_together({zero.pid, one.pid, early.pid}, 8);
  const support::Child two = rank(2, 3, ports[0]), late = rank(0, 2, ports[1]);
  for (const support::Child& c : {zero, one, two}) CHECK(support::wait_for(c) == "6");
  for (const support::Child& c : {early, late}) CHECK(support::wait_for(c) == "3");
}

namespace {
/// A rank that is there before rank 0 looks, once: what both say.
std::string said_in_last_look() {
  const control::Listener listener({"127.0.0.1", 0});
  const control::RankPlace place{1, 2, control::key_of("", secret), 5};
  std::string said;
  std::thread one([&] {
    try {
      (void)control::meet_at(at(listener.port()), place);
      said = "met";
    } catch (const sk::CommError& e) { said = e.what(); }
  });
  pollfd comes{listener.get(), POLLIN, 0};
  (void)::poll(&comes, 1, 20000);
  control::RankPlace of_zero = place;
  of_zero.rank = 0, of_zero.deadline = 1e-9;
  std::string of_rank_0;
  try {
    of_rank_0 = std::to_string(control::detail::RankAcceptor(listener, of_zero, "here").run().size());
  } catch (const sk::CommError& e) { of_rank_0 = e.what(); }
  one.join();
  return of_rank_0 + ", " + said;
}
}  // namespace

TEST_CASE("a rank that is here when rank 0 looks for the last time is taken") {
  std::string said;
  for (int attempt = 0; attempt < 5 && said != "2, met"; ++attempt)
    said = said_in_last_look();  // it has a second to prove itself
  CHECK(said == "2, met");
}

TEST_CASE("a rank that was started again takes the place of its process that ended; of two that live, both are told") {
  const int port = free_port();
  const control::RankPlace place{1, 3, control::key_of("", secret), 20};
  const auto first = support::start_process([&]() -> std::string { return control::meet_at(at(port), place), "met"; });
  const auto rank = [&](int r) {
    return support::start_process([=]() -> std::string {
      sk::ControlComm world = sk::ControlComm::from_address(at(port), r, 3, within(20, "", secret));
      return std::to_string(world.all_reduce(r + 1));
    });
  };
  const support::Child zero = rank(0);
  std::this_thread::sleep_for(400ms);
  ::kill(first.pid, SIGKILL);
  CHECK(support::wait_for(first) == "signal 9");
  const support::Child again = rank(1), two = rank(2);
  for (const support::Child& c : {zero, again, two}) CHECK(support::wait_for(c) == "6");
}

TEST_CASE("two processes that are both rank 0 are told so, not that another program has the port") {
  const int port = free_port();
  const auto zero = [&] {
    return support::start_process(
        [=]() -> std::string { return sk::ControlComm::from_address(at(port), 0, 2, within(20, "", secret)), "met"; });
  };
  const support::Child first = zero();
  (void)connected(port);
  const support::Child second = zero();
  for (const support::Child& c : {first, second})
    CHECK(support::wait_for(c) == "two processes say that they are rank 0 of 2: each needs a number of its own, from 0");
  const support::Child third = zero();  // stands still for a while, as on a busy machine
  (void)connected(port);
  ::kill(third.pid, SIGSTOP);
  const support::Child fourth = zero();
  std::this_thread::sleep_for(2500ms);
  ::kill(third.pid, SIGCONT);
  for (const support::Child& c : {third, fourth})
    CHECK(support::wait_for(c) == "two processes say that they are rank 0 of 2: each needs a number of its own, from 0");
}

TEST_CASE("two jobs at one port are told apart, and both say so") {
  const int port = free_port();
  const auto rank = [&](int r, const char* job) {
    return support::start_process([=]() -> std::string {
      return sk::ControlComm::from_address(at(port), r, 2, within(job[0] == 'a' ? 6 : 2.5, job)), "met";
    });
  };
  const support::Child a0 = rank(0, "a");
  (void)connected(port);
  const support::Child b0 = rank(0, "b"), b1 = rank(1, "b");
  CHECK_THAT(support::wait_for(b0), Contains("Another program has this port, perhaps an earlier run or another job"));
  CHECK_THAT(support::wait_for(b1), Contains("refused: " + at(port) + " belongs to another job"));
  CHECK_THAT(support::wait_for(a0), Equals("rank 1 did not arrive at " + at(port) +
                                           " within 6 s; who came from 127.0.0.1 is not of this job: is this port another job's "
                                           "too, or does SKEIN_JOB_SECRET differ?"));
}

TEST_CASE("of several ports rank 0 takes the first that is free") {
  int port = free_port();
  while (port > 60000) port = free_port();
  const control::Listener taken({"127.0.0.1", port});
  const auto said = support::run_processes(2, [&](int r) -> std::string {
    const std::unique_ptr<control::Client> client = control::meet_at(at(port), {r, 2, control::key_of("", secret), 20}, 8);
    (void)client->exchange(0, 0, "mine");
    return "met";
  });
  CHECK(said == std::vector<std::string>{"met", "met"});
}

TEST_CASE("rank 0 listens on the interface that its address names") {
  CHECK(control::Listener({"127.0.0.1", 0}).interface() == "127.0.0.1");
  CHECK(control::Listener({"localhost", 0}).loopback());
  CHECK(control::Listener({"127.0.0.2", 0}).interface() == "127.0.0.2");
  CHECK(control::Listener({"0.0.0.0", 0}).interface() == "0.0.0.0");
  CHECK_FALSE(control::Listener({"0.0.0.0", 0}).loopback());
  const std::string own = control::own_hosts().front();
  CHECK(control::Listener({own, 0}).interface() == own);
  CHECK(control::Listener({"192.0.2.1", 0}).interface() == "0.0.0.0");  // of no machine: translated on the way, perhaps
  CHECK(control::Listener({"no.such.host.invalid", 0}).interface() == "0.0.0.0");
}

TEST_CASE("the file of a meeting is its owner's alone, and another user's is refused with whose it is") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "meeting";
  const control::MeetingFile m{control::random_nonce(), control::unix_seconds(), 2, {{"127.0.0.1", 4000}}};
  std::string why;
  CHECK_FALSE(control::read_meeting(path, why));
  ::umask(0);
  control::write_meeting(path, m);
  ::umask(022);
  struct stat s {};
  REQUIRE(::stat(path.c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
  REQUIRE(control::read_meeting(path, why));
  CHECK(control::read_meeting(path, why)->secret == m.secret);
  ::chmod(path.c_str(), 0644);
  CHECK_FALSE(control::read_meeting(path, why));
  CHECK_THAT(why, Contains("others may read or write the file"));
  const std::string link = folder / "link";
  REQUIRE(::symlink(path.c_str(), link.c_str()) == 0);
  CHECK_THROWS_WITH(control::read_meeting(link, why), Contains("is a symbolic link"));
  // What was left beside is not written through.
  const std::string victim = folder / "victim", beside = path + "." + std::to_string(::getpid()) + ".new";
  std::ofstream(victim) << "precious";
  REQUIRE(::symlink(victim.c_str(), beside.c_str()) == 0);
  control::write_meeting(path, m);
  std::string text;
  std::ifstream(victim) >> text;
  CHECK(text == "precious");
  CHECK(control::is_private_folder(folder / "none") == false);
  const std::string inner = folder / "private";
  control::make_private_folder(inner);
  control::make_private_folder(inner);
  CHECK(control::is_private_folder(inner));
  ::chmod(inner.c_str(), 0755);
  CHECK_THROWS_WITH(control::make_private_folder(inner), Contains("may be entered by others"));
  CHECK_THROWS_WITH(control::make_private_folder(path), Contains("is no folder"));
  if (::geteuid() != 0) return;  // the rest needs another user
  REQUIRE(::chown(path.c_str(), 4711, 4711) == 0);
  const std::string whose = "belongs to uid 4711, and this program runs as uid 0";
  CHECK_THROWS_WITH(control::read_meeting(path, why), Contains(whose));
  CHECK_THROWS_WITH(control::write_meeting(path, m), Contains(whose));
  CHECK_THROWS_WITH(sk::ControlComm::from_file(path, 1, 2, within(5)), Contains(whose));
  ::chmod(inner.c_str(), 0700);
  REQUIRE(::chown(inner.c_str(), 4711, 4711) == 0);
  CHECK_THROWS_WITH(control::make_private_folder(inner), Contains(whose));
}
