// SPDX-License-Identifier: Apache-2.0
// GlooComm without MPI: how its ranks meet, and what they hear of one that is killed. The collectives are in
// tests/distributed/gloo.cpp.
#include "skein/comm/gloo/gloo_comm.hpp"

#include <catch2/catch.hpp>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../../support/processes.hpp"
#include "../../support/progress_cases.hpp"
#include "../../support/temporary_folder.hpp"
#include "../../support/thrown.hpp"
#include "skein/comm/hierarchical/hierarchical.hpp"
#include "skein/comm/thread/spawn.hpp"

namespace sk = skein;
using Catch::Matchers::Contains;

namespace {
sk::CommOptions options(bool shared_memory, double deadline = 20) {
  sk::CommOptions o;
  o.shared_memory = shared_memory;
  o.deadline = deadline;
  return o;
}
/// What n ranks that meet in a file say.
std::vector<std::string> of_ranks(int n, const sk::CommOptions& o, const std::function<std::string(sk::GlooComm&)>& say) {
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  return support::run_processes(n, [&](int rank) {
    sk::GlooComm world = sk::GlooComm::from_file(file, rank, n, o);
    return say(world);
  });
}
double seconds() { return sk::comm::control::now(); }
std::string sum_of(sk::GlooComm& world) { return std::to_string(world.all_reduce(world.rank() + 1)); }
}  // namespace

TEST_CASE("a GlooComm that nothing has launched is a world of one") {
  int argc = 0;
  char** argv = nullptr;
  sk::GlooComm world{argc, argv};
  CHECK(world.size() == 1);
  CHECK(sum_of(world) == "1");
  CHECK_THROWS_WITH(world.set_deadline(0), Contains("set_deadline: a deadline is seconds, more than 0"));
  CHECK_THROWS_WITH(sk::GlooComm(argc, argv, options(true, -1)), Contains("a deadline is seconds, more than 0"));
}

TEST_CASE("a GlooComm that is to meet others, and is told no rank or size, names the variable and is no world of one") {
  const auto said = [](const char* set) {
    return support::wait_for(support::start_process([&] {
      ::setenv("MASTER_ADDR", "10.0.0.1", 1);
      if (*set) ::setenv(set, "1", 1);
      int argc = 0;
      char** argv = nullptr;
      sk::GlooComm world{argc, argv};
      return "a world of " + std::to_string(world.size());
    }));
  };
  CHECK_THAT(said(""), Contains("although MASTER_ADDR is '10.0.0.1': set RANK and WORLD_SIZE,") &&
                           Contains("for a world of one unset MASTER_ADDR"));
  CHECK_THAT(said("RANK"), Contains("WORLD_SIZE"));
  CHECK_THAT(said("WORLD_SIZE"), Contains("RANK"));
}

TEST_CASE("ranks of torchrun meet by what it says") {
  const bool shared = GENERATE(true, false);
  int port = 0;
  {
    sk::comm::control::Listener listener({"127.0.0.1", 0});
    port = listener.port();
  }
  const std::vector<std::string> said = support::run_processes(3, [&](int rank) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", "3", 1);
    ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
    int argc = 0;
    char** argv = nullptr;
    sk::GlooComm world{argc, argv, options(shared)};
    return sum_of(world) + (world.shares_memory() ? " in memory" : "");
  });
  const std::string wanted = shared ? "6 in memory" : "6";
  CHECK(said == std::vector<std::string>{wanted, wanted, wanted});
}

TEST_CASE("a rank that is killed inside a collective is named by the others, long before the deadline") {
  const bool shared = GENERATE(true, false);
  const int killed = GENERATE(0, 1);
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  const std::vector<std::string> said = support::run_processes(3, [&](int rank) -> std::string {
    sk::GlooComm world = sk::GlooComm::from_file(file, rank, 3, options(shared, 600));
    std::vector<float> data(300000, 1);
    world.all_reduce(data);
    if (rank == killed) ::raise(SIGKILL);
    try {
      while (true) world.all_reduce(data);
    } catch (const sk::CommError& e) { return e.what(); }
  });
  for (int r = 0; r < 3; ++r)
    if (r != killed)
      CHECK_THAT(said[static_cast<std::size_t>(r)], Contains("rank " + std::to_string(killed)) && Contains("killed"));
}

TEST_CASE("the exception of a function that reduces is that of its rank, also while that waits in another GlooComm") {
  const bool of_part = GENERATE(true, false), in_destructor = GENERATE(false, true);
  const std::vector<std::string> said = of_ranks(3, options(true, 5), [&](sk::GlooComm& world) {
    return support::thrown<std::exception>([&] { progress_cases::own_fault_with_part(world, of_part, in_destructor); });
  });
  CHECK(said[2] == progress_cases::Checked::too_large);
  CHECK_THAT(said[0], Contains("rank 2 failed: an exception passed"));
  CHECK_THAT(said[1], Contains("rank"));
}

TEST_CASE("the exception of a function that reduces is that of its rank, also while that waits in a ControlComm") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  const std::vector<std::string> said = of_ranks(3, options(true, 5), [&](sk::GlooComm& world) {
    return support::thrown<std::exception>([&] {
      sk::ControlComm control = sk::ControlComm::from_file(file, world.rank(), 3);
      progress_cases::own_fault(world, control);
    });
  });
  CHECK(said[2] == progress_cases::Checked::too_large);
  CHECK_THAT(said[0], Contains("rank 2 failed: an exception passed"));
}

TEST_CASE("the exception of a function that reduces is no fault of gloo's, where it comes while that connects the ranks") {
  struct Refuses {
    bool refuses;
    int operator()(int a, int b) const { return refuses ? throw std::overflow_error("refused") : a + b; }
  };
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  const std::vector<std::string> said = support::run_processes(2, [&](int rank) -> std::string {
    sk::ControlComm control = sk::ControlComm::from_file(file, rank, 2);
    control.barrier();
    if (rank == 0) return control.fail("rank 0 does not connect"), "failed";
    std::string text;
    const auto work = [&](sk::ThreadComm& world) {
      std::vector<int> data(64, 1);
      const auto request = world.start_all_reduce(data, Refuses{world.rank() == 0});
      if (world.rank() != 0) return;
      while (!world.engine().team().failure->happened()) (void)sk::comm::Progress::move_others(nullptr);
      text = support::thrown<std::exception>(
          [&] { const sk::comm::GlooEngine engine(control, options(false), {.shares_memory = false, .one_machine = true}); });
    };
    (void)support::thrown<std::exception>([&] { sk::spawn(2, work); });
    return text;
  });
  CHECK(said == std::vector<std::string>{"failed", "refused"});
}

TEST_CASE("two levels of a GlooComm: where one fails as a call is started, the others hear of it") {
  struct Refuses {
    bool refuses;
    float operator()(float a, float b) const { return refuses ? throw std::overflow_error("refused") : a + b; }
  };
  const support::TemporaryFolder folder;
  const std::string heard = folder / "rank 3 has heard";
  const std::vector<std::string> said = of_ranks(4, options(true, 15), [&](sk::GlooComm& world) {
    sk::Hierarchical levels{world, 2};
    std::vector<float> data(1000, 1.0f);
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it adds up what is there already
    const std::string text = support::thrown<std::exception>([&] { levels.all_reduce(data, Refuses{world.rank() == 1}); });
    if (world.rank() == 3) std::ofstream{heard};
    const double begin = seconds();  // rank 1 makes no call until then
    while (world.rank() == 1 && !std::ifstream(heard) && seconds() - begin < 8)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const bool late = seconds() - begin >= 8;
    world.barrier();
    return late ? "too late" : text;
  });
  CHECK(said[1] == "refused");
  for (const std::size_t r : {0, 3}) CHECK_THAT(said[r], Catch::StartsWith("rank 1 failed: an exception passed"));
  CHECK_THAT(said[2], Catch::StartsWith("rank "));
}

TEST_CASE("a short message to a rank that receives later holds up no other") {
  const bool shared = GENERATE(true, false);
  const std::vector<std::string> said = of_ranks(3, options(shared, 5), [](sk::GlooComm& world) {
    int x = world.rank() == 0 ? 7 : 0;
    if (world.rank() == 0) world.send(std::span(&x, 1), 1, 1), world.send(std::span(&x, 1), 2, 1), world.barrier();
    if (world.rank() == 1) world.barrier(), world.recv(std::span(&x, 1), 0, 1);
    if (world.rank() == 2) world.recv(std::span(&x, 1), 0, 1), world.barrier();
    return std::to_string(x);
  });
  CHECK(said == std::vector<std::string>{"7", "7", "7"});
}

TEST_CASE("long messages that nobody has asked for stay with their sender") {
  const bool shared = GENERATE(true, false);
  const std::vector<std::string> said = of_ranks(2, options(shared), [](sk::GlooComm& world) {
    std::vector<char> first(4 << 20, 'a'), second(4 << 20, 'b'), third(1, 'c');
    if (world.rank() == 0) world.send(third, 1, 0);
    if (world.rank() == 1) {
      world.recv(third, 0, 0);
      world.barrier();  // nothing is asked for before
      world.recv(third, 0, 3);
      world.recv(second, 0, 2);
      world.recv(first, 0, 1);
      return std::string{first.back(), second.back(), third.back()};
    }
    auto a = world.isend(first, 1, 1);
    auto b = world.isend(second, 1, 2);
    auto c = world.isend(third, 1, 3);
    const bool left = b.wait_for(std::chrono::milliseconds(300));
    world.barrier();
    a.wait();
    b.wait();
    c.wait();
    return std::string(left ? "left" : "stayed");
  });
  CHECK(said == std::vector<std::string>{"stayed", "abc"});
}

TEST_CASE("a rank that returns while others call is named, and does not wait for them") {
  const bool shared = GENERATE(true, false);
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  const std::vector<std::string> said = support::run_processes(3, [&](int rank) -> std::string {
    double begun = 0;
    {
      sk::GlooComm world = sk::GlooComm::from_file(file, rank, 3, options(shared, 20));
      world.barrier();
      begun = seconds();
      std::vector<float> data(1000);
      if (rank != 1) world.all_reduce(data);
    }
    return seconds() - begun < 5 ? "left at once" : "waited";
  });
  const std::string text = "all_reduce(Sum) of 1000 float (call 1): rank 1 returned and will not arrive";
  CHECK(said == std::vector<std::string>{text, "left at once", text});
}

TEST_CASE("what a rank has sent before it returned comes, and what it has not is said to be missing") {
  const bool shared = GENERATE(true, false);
  const std::vector<std::string> said = of_ranks(2, options(shared, 20), [](sk::GlooComm& world) -> std::string {
    int x = 5, y = 0;
    if (world.rank() == 1) return world.send(std::span(&x, 1), 0, 1), "sent";
    while (!world.engine().has_left(1)) ::usleep(1000);
    world.recv(std::span(&y, 1), 1, 1);
    try {
      world.recv(std::span(&x, 1), 1, 2);
    } catch (const sk::CommError& e) { return std::to_string(y) + ": " + e.what(); }
    return "";
  });
  CHECK(said == std::vector<std::string>{"5: recv from rank 1 (tag 2) on rank 0: rank 1 returned and will not arrive", "sent"});
}

TEST_CASE("a rank that polls for a message of one that has returned is told") {
  const bool shared = GENERATE(true, false);
  const std::vector<std::string> said = of_ranks(2, options(shared, 20), [](sk::GlooComm& world) -> std::string {
    if (world.rank() == 1) return "left";
    int x = 0;
    try {
      auto request = world.irecv(std::span(&x, 1), 1, 2);
      for (const double end = seconds() + 8; !request.poll(); ::usleep(100))
        if (seconds() > end) throw sk::CommError("it polls for ever");
    } catch (const sk::CommError& e) { return e.what(); }
    return "";
  });
  CHECK(said == std::vector<std::string>{"recv from rank 1 (tag 2) on rank 0: rank 1 returned and will not arrive", "left"});
}

TEST_CASE("who is done does not wait for a rank that has died with a message on its way") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  const std::vector<std::string> said = support::run_processes(2, [&](int rank) -> std::string {
    std::optional<sk::GlooComm> world{sk::GlooComm::from_file(file, rank, 2, options(false, 20))};
    const int other = world->all_gather(static_cast<int>(::getpid()))[1];
    world->barrier();
    if (rank == 1) return ::raise(SIGSTOP), "";
    std::string state;
    while (state != "T") std::ifstream("/proc/" + std::to_string(other) + "/stat") >> state >> state >> state;
    world->send(std::span(&rank, 1), 1, 1);  // nobody takes it
    std::thread kill([other] { ::usleep(300000), ::kill(other, SIGKILL); });
    const double begun = seconds();
    world.reset();
    kill.join();
    return seconds() - begun < 8 ? "left at once" : "waited";
  });
  CHECK(said[0] == "left at once");
}

TEST_CASE("a rank that cannot start its threads says so to all") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  const std::vector<std::string> said = support::run_processes(3, [&](int rank) -> std::string {
    sk::MeetOptions meet;
    meet.deadline = 20;
    sk::ControlComm control = sk::ControlComm::from_file(file, rank, 3, meet);
    control.barrier();
    if (rank == 1) {  // room for three stacks: of gloo's thread, of the one of the collectives, and of one that receives
      constexpr std::size_t stack = std::size_t{1} << 30;
      pthread_attr_t large;
      pthread_attr_init(&large);
      pthread_attr_setstacksize(&large, stack);
      pthread_setattr_default_np(&large);
      std::size_t pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      const rlimit most{pages * 4096 + stack / 2 * 7, RLIM_INFINITY};
      ::setrlimit(RLIMIT_AS, &most);
    }
    sk::GlooComm world(std::move(control), options(false, 20));
    return world.barrier(), "met";
  });
  for (const std::string& text : said) CHECK_THAT(text, Contains("rank 1 cannot start a thread ("));
}

TEST_CASE("communicators may end in another order on each rank") {
  const bool shared = GENERATE(true, false);
  const std::vector<std::string> said = of_ranks(2, options(shared, 20), [](sk::GlooComm& world) {
    auto a = std::make_unique<sk::GlooComm>(world.split(0)), b = std::make_unique<sk::GlooComm>(world.split(0));
    const double begun = seconds();
    if (world.rank() == 0) a.reset(), b.reset();
    else b.reset(), a.reset();
    return sum_of(world) + (seconds() - begun < 5 ? " at once" : " late");
  });
  CHECK(said == std::vector<std::string>{"3 at once", "3 at once"});
}

namespace {
/// What two ranks say of 256 MiB of which some come each tenth of a second, for longer than their deadline of one second.
std::vector<std::string> said_of_what_moves(bool collective) {
  sk::CommOptions o = options(false);
  o.message = 65536;
  return of_ranks(2, o, [&](sk::GlooComm& world) -> std::string {
    const std::vector<pid_t> processes = world.all_gather(::getpid());
    std::vector<char> data(std::size_t{256} << 20, static_cast<char>('a' + world.rank()));
    world.barrier();
    world.set_deadline(1);
    std::thread slows;
    std::atomic<bool> over{false};
    if (world.rank() == 0)
      slows = std::thread([&] {  // 15 times rank 1 stands still for a while, and is let run until some more has come
        for (std::size_t i = 1; i <= 15 && !over; ++i) {
          while (!over && std::atomic_ref(data[i << 23]) != 'b') ::usleep(200);
          ::kill(processes[1], SIGSTOP), ::usleep(100000);
          ::kill(processes[1], SIGCONT);
        }
      });
    std::string text;
    try {
      if (collective) world.broadcast(data, 1);
      else if (world.rank() == 0) world.recv(data, 1, 3);
      else world.send(data, 0, 3);
    } catch (const sk::CommError& e) { text = e.what(); }
    over = true;
    if (slows.joinable()) slows.join();
    return text + data.front() + data.back();
  });
}
}  // namespace

TEST_CASE("what moves and takes longer than the deadline is not missed") {
  const bool collective = GENERATE(true, false);
  const std::vector<std::string> right{"bb", "bb"};
  std::vector<std::string> said;
  for (int attempt = 0; attempt < 4 && said != right; ++attempt)
    said = said_of_what_moves(collective);  // cores may be busy for 1 s
  CHECK(said == right);
}

TEST_CASE("ranks that were stopped together, for longer than the deadline, go on") {
  const bool shared = GENERATE(true, false), by_control = !shared && GENERATE(false, true);
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  const auto rank = [&](int r) {
    return support::start_process([=]() -> std::string {
      sk::GlooComm world = sk::GlooComm::from_file(file, r, 2, options(shared, 4));
      world.barrier();
      if (r == 1) {  // arrives a second of its own time later: the other waits for it before and after both stand still
        std::ofstream(file + ".now").flush();
        for (int i = 0; i < 100; ++i) ::usleep(10000);
      }
      return by_control ? std::to_string(world.split(0).size()) : sum_of(world);
    });
  };
  const support::Child zero = rank(0), one = rank(1);
  for (int i = 0; i < 2000 && ::access((file + ".now").c_str(), F_OK) != 0; ++i) ::usleep(10000);
  support::stop_together({zero.pid, one.pid});
  const std::string right = by_control ? "2" : "3";
  CHECK(support::wait_for(zero) == right);
  CHECK(support::wait_for(one) == right);
}

TEST_CASE("a call of large values is started without waiting for the others") {
  const bool shared = GENERATE(true, false);
  struct Large {
    int values[1200] = {};
  };
  const std::vector<std::string> said = of_ranks(2, options(shared, 5), [](sk::GlooComm& world) -> std::string {
    sk::GlooComm part = world.split(0);
    std::vector<Large> own(1), all(2);
    own[0].values[1199] = world.rank() + 1;
    if (world.rank() == 0) {
      auto gathers = part.start_all_gather(own, all);
      world.barrier();
      gathers.wait();
    } else {
      world.barrier();
      part.all_gather(own, all);
    }
    return std::to_string(all[0].values[1199]) + ", " + std::to_string(all[1].values[1199]);
  });
  CHECK(said == std::vector<std::string>{"1, 2", "1, 2"});
}

TEST_CASE("calls of large values are compared with the others' calls") {
  struct Large {
    int values[1200] = {};
  };
  for (const std::string& text : of_ranks(2, options(true, 20), [](sk::GlooComm& world) -> std::string {
         if (world.rank() == 0) (void)world.all_gather(Large{});
         else world.barrier();
         return "nothing";
       }))
    CHECK_THAT(text, Contains("differs between ranks: rank 0: all_gather of 1 objects of 4800 bytes; rank 1: barrier"));
}

TEST_CASE("an interrupt that leaves the scope of a GlooComm is no failure of its rank") {
  const bool shared = GENERATE(true, false);
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  int left[2];
  REQUIRE(::pipe(left) == 0);
  const std::vector<std::string> said = support::run_processes(2, [&](int rank) -> std::string {
    const auto run = [&] {
      sk::GlooComm world = sk::GlooComm::from_file(file, rank, 2, options(shared, 20));
      int x = 5;
      if (rank == 0) world.send(std::span(&x, 1), 1, 1);
      char one = 0;
      if (rank == 1) (void)!::read(left[0], &one, 1), world.recv(std::span(&x, 1), 0, 1);
      throw sk::Interrupted(SIGINT, "fit: SIGINT");
    };
    if (rank == 0) {
      ::close(left[0]);
      // By a thread, when the world's end is under way: it waits for the others' end where it holds the coordinator.
      std::thread end([&] {
        while (!sk::Interrupted::any()) ::usleep(1000);
        ::usleep(50000);
        (void)!::write(left[1], "x", 1);
      });
      std::string text;
      try {
        run();
      } catch (const sk::Interrupted& e) { text = e.what(); }
      end.join();
      return text;
    }
    run();
    return "";
  });
  ::close(left[0]), ::close(left[1]);
  CHECK(said == std::vector<std::string>{"fit: SIGINT", "fit: SIGINT"});
}

TEST_CASE("a rank that dies before its connections are made is named at once") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  const std::vector<std::string> said = support::run_processes(3, [&](int rank) -> std::string {
    sk::MeetOptions meet;
    meet.deadline = 25;
    sk::ControlComm control = sk::ControlComm::from_file(file, rank, 3, meet);
    const auto device = sk::comm::gloo_device(control, true);
    if (rank != 2) {
      const sk::comm::GlooMesh mesh(control, device);
      return "connected";
    }
    const auto context = device->createContext(2, 3);  // where it listens is told, and it connects with nobody
    std::string own;
    for (int r = 0; r < 2; ++r) {
      const std::vector<char> at = context->createPair(r)->address().bytes();
      sk::comm::control::append_part(own, std::string_view(at.data(), at.size()));
    }
    (void)control.all_gather(own);
    ::raise(SIGKILL);
    return "";
  });
  for (int r = 0; r < 2; ++r) CHECK_THAT(said[static_cast<std::size_t>(r)], Contains("rank 2 is gone"));
}

TEST_CASE("ranks are reached at their address in the network over which they met") {
  const auto host = [](std::vector<std::string> hosts, int rank) { return sk::comm::gloo_host(hosts, rank); };
  CHECK(host({"10.0.0.1", "10.0.0.2"}, 1) == "10.0.0.2");
  CHECK(host({"fd00::1", "fd00::2"}, 0) == "fd00::1");
  CHECK(host({"10.0.0.1", "127.0.0.1", "10.0.0.2"}, 1) == "10.0.0.1");  // on rank 0's machine
  CHECK(host({"127.0.0.1", "127.0.0.1"}, 1) == "127.0.0.1");
  CHECK(host({"", ""}, 0) == "127.0.0.1");
  const std::string loopback = GENERATE("127.0.0.1", "::1");
  int port = 0;
  try {
    sk::comm::control::Listener listener({loopback, 0});
    port = listener.port();
  } catch (const sk::CommError&) { return; }  // a machine without IPv6
  const std::string address = sk::comm::control::Address{loopback, port}.text();
  const std::vector<std::string> said = support::run_processes(2, [&](int rank) {
    sk::ControlComm control = sk::ControlComm::from_address(address, rank, 2);
    const std::string own = control.engine().client().host();
    const sk::comm::GlooMesh mesh(control, sk::comm::gloo_device(control, false));
    control.barrier();
    return own;
  });
  CHECK(said == std::vector<std::string>{loopback, loopback});
}
