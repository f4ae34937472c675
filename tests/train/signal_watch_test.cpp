// SPDX-License-Identifier: Apache-2.0
// Signals to programs that train: processes of one rank and of two that are threads. Those of MPI:
// tests/distributed/interrupt.cpp.
#include "../support/seed_of_start.hpp"
#include "skein/train/signal_watch.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <skein/comm/thread/spawn.hpp>
#include <skein/core/run.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/average/post_local_sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/parallel/server/parameter_server.hpp>
#include <skein/train/trainer.hpp>

#include "../support/points.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {
using Net = nn::Sequential<nn::Linear<13>, nn::Tanh, nn::Dropout<sk::Rate<1, 4>>, nn::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<5>>;

struct Points : support::Points {
  Points() : support::Points(120, {1, {5}}) {}
};
struct AtUpdate {
  std::function<void(std::int64_t)> act;
  void on_update(std::int64_t step) const { act(step); }
};

struct AtEnd {
  std::function<void()> act;
  void on_fit_end(const sk::History&) const { act(); }
};

/// 4 epochs of 10 steps, or of 120 / batch; the weights.
template <class Policy> std::vector<float> program(const Policy& policy, sk::FitOptions o,
                                                   const std::function<void(std::int64_t)>& act = nullptr, int batch = 12) {
  const Points points;
  Model model{support::seed_of_start(o.checkpoint.folder.path())};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}, policy};
  o.epochs = 4, o.batch = batch, o.progress = false, o.threads = 1;
  if (act) o.callbacks.add(AtUpdate{act});
  trainer.fit(points.set(), o);
  return {model.parameters().begin(), model.parameters().end()};
}
template <class... More> std::vector<float> on_ranks(int ranks, const More&... more) {
  if (ranks == 1) return program(sk::parallel::SingleProcess{}, more...);
  std::vector<float> weights;
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    const std::vector<float> own = program(sk::parallel::DataParallel{world}, more...);
    if (world.rank() == 0) weights = own;
  });
  return weights;
}

struct Ended {
  int status = 0;
  std::string said{};
  std::chrono::steady_clock::duration sending{}, after{};  // from its first signal to the last, and to its end
  bool by(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }
  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
};
/// What a program says to who sends it signals, and hears from it; by any of its ranks.
struct Begun {
  int says, hears;
  mutable std::atomic<bool> told{false};
  Begun(int says_in, int hears_in) : says(says_in), hears(hears_in) {}
  /// "The first step": signals may come.
  void operator()() const {
    if (!told.exchange(true)) (void)!::write(says, "x", 1);
  }
  /// Waits until all signals have come, however late a busy machine sends them.
  void wait_for_signals() const {
    pollfd p{hears, POLLIN, 0};
    while (::poll(&p, 1, -1) < 1) {}
  }
};
/// Has a process no signal that it has still to take? One that has ended takes none.
bool has_taken_all(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;)
    if (word == "State:") {
      if (status >> word && (word == "Z" || word == "X")) return true;
    } else if (word == "ShdPnd:") {
      return status >> word && word.find_first_not_of('0') == word.npos;
    }
  return true;
}
/// A program under sk::run, to which signals are sent so many microseconds after its first step. `is_read`: what it says, up to
/// the first signal.
Ended in_a_process(const std::function<void(const Begun& begun)>& body, long microseconds, const std::vector<int>& signals,
                   std::chrono::milliseconds between = 0ms, bool is_read = true) {
  int begun[2], out[2], sent[2];
  (void)!::pipe(begun);
  (void)!::pipe(out);
  (void)!::pipe(sent);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int s : {SIGINT, SIGTERM, SIGPIPE}) ::signal(s, SIG_DFL);  // Catch2 has handlers
    ::dup2(out[1], 2);
    ::close(out[0]);
    char name[] = "program";
    char* argv[] = {name, nullptr};
    const int code = sk::run(1, argv, [&] { body(Begun(begun[1], sent[0])); });
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::close(begun[1]);
  ::close(out[1]);
  char one = 0;
  (void)!::read(begun[0], &one, 1);
  if (microseconds >= 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  if (!is_read) ::close(out[0]);
  const auto first = std::chrono::steady_clock::now();
  for (const int s : signals) {
    ::kill(pid, s);
    std::this_thread::sleep_for(between);
  }
  Ended e;
  e.sending = std::chrono::steady_clock::now() - first;
  while (!has_taken_all(pid)) std::this_thread::sleep_for(1ms);
  (void)!::write(sent[1], "x", 1);
  char some[4096];
  for (ssize_t n; is_read && (n = ::read(out[0], some, sizeof some)) > 0;) e.said.append(some, static_cast<std::size_t>(n));
  ::waitpid(pid, &e.status, 0);
  e.after = std::chrono::steady_clock::now() - first;
  ::close(begun[0]);
  ::close(sent[0]);
  ::close(sent[1]);
  if (is_read) ::close(out[0]);
  return e;
}
sk::FitOptions saved_in(const std::string& folder) { return {.checkpoint = {.folder = folder}}; }
}  // namespace

TEST_CASE("a program that gets signals at random instants goes on from its commits, and ends with the same bits", "[train]") {
  const int ranks = GENERATE(1, 2);
  const std::vector<float> whole = on_ranks(ranks, sk::FitOptions{});
  const support::TemporaryFolder folder;
  int interrupted = 0;
  for (int start = 0; start < 60; ++start) {
    const int signal = start % 2 ? SIGINT : SIGTERM;
    const Ended e = in_a_process(
        [&](const auto& begun) {
          std::atomic<int> steps = 0;
          (void)on_ranks(ranks, saved_in(folder / "run"), [&](std::int64_t) {
            begun();
            std::this_thread::sleep_for(5ms);
            if (++steps > 4 * ranks) begun.wait_for_signals();
          });
        },
        static_cast<long>(1000 +
                          17000 * sk::random_uniform(5, static_cast<std::uint64_t>(ranks), static_cast<std::uint64_t>(start))),
        {signal});
    if (e.code() == 128 + signal) {
      ++interrupted;
      CHECK_THAT(e.said,
                 Contains(std::string("program: fit: ") + (signal == SIGINT ? "SIGINT" : "SIGTERM") + " ended it after step"));
      CHECK_THAT(e.said, Contains("the training is saved in") &&
                             Contains(std::string("skein: ") + (signal == SIGINT ? "SIGINT" : "SIGTERM") +
                                      " ends the fit after this step"));
    } else if (!e.by(signal)) {  // it came after the fit
      CHECK(e.said == "");
      REQUIRE(e.code() == 0);
      break;
    }
  }
  CHECK(interrupted >= 2);
  CHECK(on_ranks(ranks, saved_in(folder / "run")) == whole);
}

TEST_CASE("a second signal ends the program at once, by its default action; several at one time are one", "[train]") {
  const auto slow = [](const auto& begun) {
    (void)on_ranks(1, sk::FitOptions{}, [&](std::int64_t) {
      begun();
      std::this_thread::sleep_for(20s);
    });
  };
  const auto before = std::chrono::steady_clock::now();
  CHECK(in_a_process(slow, 10000, {SIGINT, SIGINT}, 600ms).by(SIGINT));
  CHECK(in_a_process(slow, 10000, {SIGINT, SIGTERM}, 600ms).by(SIGTERM));
  CHECK(std::chrono::steady_clock::now() - before < 15s);
  Ended both;
  for (int trial = 0; trial < 10; ++trial) {
    both = in_a_process(
        [](const auto& begun) {
          (void)on_ranks(1, sk::FitOptions{}, [&](std::int64_t) {
            begun();
            std::this_thread::sleep_for(100ms);
          });
        },
        10000, {SIGINT, SIGTERM}, 10ms);
    // A busy machine may let the second come when the fit is over, or half a second later.
    if (!both.by(SIGTERM) || (both.sending < 50ms && both.after < 500ms)) break;
  }
  CHECK(both.code() == 128 + SIGINT);
  CHECK_THAT(both.said, Contains("nothing is saved: with .checkpoint"));
}

TEST_CASE("another signal can be named, signals can be left alone, and the program's handlers stay", "[train]") {
  const auto training = [](sk::train::FitInterrupt interrupt) {
    return [interrupt](const auto& begun) {
      (void)on_ranks(2, sk::FitOptions{.interrupt = interrupt}, [&](std::int64_t step) {
        begun();
        std::this_thread::sleep_for(10ms);
        if (step == 3) begun.wait_for_signals();
      });
    };
  };
  CHECK(in_a_process(training({.also = SIGUSR1}), 10000, {SIGUSR1}).code() == 128 + SIGUSR1);
  CHECK(in_a_process(training({}), 10000, {SIGUSR1}).by(SIGUSR1));
  CHECK(in_a_process(training({.on_signals = false}), 10000, {SIGINT}).by(SIGINT));
  const auto owns = [&](void (*handler)(int)) {
    return [=](const auto& begun) {
      ::signal(SIGINT, handler);
      training({})(begun);
      if (::signal(SIGINT, SIG_DFL) != handler) throw std::runtime_error("the handler was replaced");
    };
  };
  CHECK(in_a_process(owns(SIG_IGN), 10000, {SIGINT}).code() == 0);  // as under nohup
  CHECK(in_a_process(owns([](int) { ::_exit(77); }), 10000, {SIGINT}).code() == 77);
  CHECK(in_a_process(owns(SIG_DFL), 0, {}).code() == 0);  // what was there is there again
}

TEST_CASE("fit throws on all ranks, the same, and the trainer can be asked afterwards", "[train]") {
  const Ended e = in_a_process(
      [](const auto& begun) {
        std::vector<std::string> texts(2);
        sk::spawn(2, [&](sk::ThreadComm& world) {
          const Points points;
          Model model{sk::Seed{3}};
          sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}, sk::parallel::DataParallel{world}};
          sk::FitOptions o{.epochs = 4, .batch = 12, .progress = false, .threads = 1};
          o.callbacks.add(AtUpdate{[&](std::int64_t step) {
            std::this_thread::sleep_for(10ms);
            if (world.rank() == 1 && step == 3) ::raise(SIGTERM);
          }});
          try {
            trainer.fit(points.set(), o);
          } catch (const sk::Interrupted& i) {
            if (i.signal() == SIGTERM && sk::Interrupted::any()) texts[static_cast<std::size_t>(world.rank())] = i.what();
          }
          const std::int64_t stopped = trainer.train_step().steps();
          if (stopped < 3 || stopped >= 40) throw std::runtime_error("stopped at " + std::to_string(stopped));
        });
        begun();
        if (texts[0].empty() || texts[0] != texts[1] || sk::Interrupted::any()) throw std::runtime_error(texts[0] + texts[1]);
      },
      -1, {});
  CHECK(e.code() == 0);
  CHECK_THAT(e.said, Contains("skein: SIG") && Contains(" ends the fit after this step") && !Contains("program:"));
}

TEST_CASE("ranks whose weights drift end where all meet, or within about a second", "[train]") {
  const auto ends = [](const auto& of, const char* step) {
    Ended e;
    const std::string wanted = std::string("program: fit: SIGINT ended it after step ") + step + ";";
    for (int trial = 0; trial < 20; ++trial) {
      e = in_a_process(
          [&](const auto& begun) {
            begun();
            sk::spawn(2, [&](sk::ThreadComm& world) {
              (void)program(of(world), {}, [&](std::int64_t at) {
                if (at == 3 && world.rank() == 1) ::raise(SIGINT);
              });
            });
          },
          -1, {});
      CHECK(e.code() == 128 + SIGINT);
      CHECK_THAT(e.said, Catch::Matchers::Matches(R"([^]*program: fit: SIGINT ended it after step ([3-9]|10);[^]*)"));
      if (e.said.find(wanted) != e.said.npos || e.after < 100ms) break;  // slow steps do not wait until all meet
    }
    CHECK_THAT(e.said, Contains(wanted));
    CHECK_THAT(e.said, Contains("skein: SIGINT ends the fit when all ranks have made the same step, within about a second;"));
  };
  ends([](auto& world) { return sk::parallel::ModelAverage{world, {}, sk::parallel::Period<7>{}}; }, "7");
  ends([](auto& world) { return sk::parallel::ModelAverage{world, {.delay = 2}, sk::parallel::Period<7>{}}; }, "10");
  ends([](auto& world) { return sk::parallel::DataParallel{world, sk::parallel::SyncEvery<4>{}}; }, "8");
  ends([](auto& world) { return sk::parallel::Gossip{world}; }, "10");
  ends(
      [](auto& world) {
        return sk::parallel::PostLocalSgd{world, sk::parallel::SyncFirst<2>{}, sk::parallel::Period<6>{}};
      },
      "6");
}

TEST_CASE("ranks that wait for nobody end within about a second, at one step", "[train]") {
  const auto ends = [](const auto& of) {
    const auto before = std::chrono::steady_clock::now();
    const Ended e = in_a_process(
        [&](const auto& begun) {
          begun();
          sk::spawn(2, [&](sk::ThreadComm& world) {
            const auto act = [&](std::int64_t at) {
              std::this_thread::sleep_for(120ms);
              if (at == 3 && world.rank() == 1) ::raise(SIGINT);
            };
            (void)program(of(world), {}, act, 2);
          });
        },
        -1, {});
    CHECK(e.code() == 128 + SIGINT);
    // 4 to 9 on an idle machine; the epoch ends at 60, after 7 s.
    CHECK_THAT(e.said, Catch::Matchers::Matches(R"([^]*SIGINT ended it after step ([4-9]|[1-4][0-9]);[^]*)"));
    CHECK(std::chrono::steady_clock::now() - before < 7s);
  };
  using namespace sk::parallel;
  ends([](auto& world) { return Gossip{world}; });
  ends([](auto& world) { return Gossip{world, Staleness<2>{}}; });
  ends([](auto& world) { return ModelAverage{world, {.delay = 3}, Period<7>{}}; });
  ends([](auto& world) { return ModelAverage{world, Period<2, Every::epoch>{}}; });
  ends([](auto& world) { return ModelAverage{world, Period<1000>{}}; });
}

TEST_CASE("a signal ends the fits of those that train and of those that serve", "[train]") {
  const auto check = [](const auto& bound) {
    const auto before = std::chrono::steady_clock::now();
    const Ended e = in_a_process(
        [&](const auto& begun) {
          begun();
          sk::spawn(3, [&](sk::ThreadComm& world) {
            const auto act = [&](std::int64_t at) {
              std::this_thread::sleep_for(120ms);
              if (at == 3 && world.rank() == 1) ::raise(SIGTERM);
            };
            (void)program(sk::parallel::ParameterServer{world, {}, bound}, {}, act, 2);
          });
        },
        -1, {});
    CAPTURE(e.said);
    CHECK(e.code() == 128 + SIGTERM);
    CHECK_THAT(e.said, Contains("SIGTERM ended it"));
    CHECK(std::chrono::steady_clock::now() - before < 12s);  // 4 epochs of 60 steps take 29 s
  };
  check(sk::parallel::Staleness<0>{});
  check(sk::parallel::Staleness<4>{});
  check(sk::parallel::Staleness<sk::parallel::unbounded>{});
}

TEST_CASE("a training with servers may be saved where a signal has ended it, and goes on", "[train]") {
  const support::TemporaryFolder folder;
  const auto program = [&](int epochs, bool ends) {
    return in_a_process(
        [&](const auto& begun) {
          begun();
          sk::spawn(3, [&](sk::ThreadComm& world) {
            const Points points;
            Model model{sk::Seed{3}};
            sk::parallel::ParameterServer policy{world, {}, sk::parallel::Staleness<2>{}};
            sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}, policy};
            sk::FitOptions o{.epochs = epochs, .batch = 12, .progress = false, .threads = 1};
            o.callbacks.add(AtUpdate{[&](std::int64_t at) {
              if (ends && at == 7 && world.rank() == 1) ::raise(SIGTERM);
            }});
            if (!ends) trainer.load(folder / "saved");
            try {
              trainer.fit(points.set(), o);
            } catch (const sk::Interrupted&) {
              trainer.save(folder / "saved");
              if (world.rank() == 2) std::this_thread::sleep_for(50ms);  // rank 0 leaves first
              throw;
            }
          });
        },
        -1, {});
  };
  const Ended saved = program(400, true);
  CAPTURE(saved.said);
  CHECK(saved.code() == 128 + SIGTERM);  // and not "rank 0 failed"
  const Ended resumed = program(4, false);
  CAPTURE(resumed.said);
  CHECK(resumed.code() == 0);
}

TEST_CASE("the stages of a pipeline end between two steps", "[train]") {
  const Ended e = in_a_process(
      [](const auto& begun) {
        begun();
        sk::spawn(2, [&](sk::ThreadComm& world) {
          const Points points;
          using Stages = sk::parallel::Pipeline<nn::Sequential<nn::Linear<13>, nn::Tanh>, nn::Linear<3>>;
          const Stages pipeline{world, {.micro_batch = 6}};
          auto staged = pipeline.model<sk::Shape<5>>(sk::Seed{3});
          sk::Trainer trainer{staged, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}, pipeline};
          sk::FitOptions o{.epochs = 4, .batch = 12, .progress = false, .threads = 1};
          o.callbacks.add(AtUpdate{[&](std::int64_t step) {
            if (step == 3 && world.rank() == 1) ::raise(SIGINT);
          }});
          (void)trainer.fit(points.set(), o);
        });
      },
      -1, {});
  CHECK(e.code() == 128 + SIGINT);
  CHECK_THAT(e.said, Catch::Matchers::Matches(R"([^]*SIGINT ended it after step [345];[^]*)"));
  CHECK_THAT(e.said, Contains("skein: SIGINT ends the fit after this step;"));
}

TEST_CASE("who reads the output ends by the same Ctrl-C, and the training is saved", "[train]") {
  const support::TemporaryFolder folder;
  const auto steps = [](const auto& begun) {
    return [&](std::int64_t step) {
      begun();
      std::this_thread::sleep_for(5ms);
      if (step == 3) begun.wait_for_signals();
    };
  };
  const Ended e = in_a_process([&](const auto& begun) { (void)on_ranks(1, saved_in(folder / "run"), steps(begun)); }, 0, {SIGINT},
                               0ms, false);
  CHECK(e.code() == 128 + SIGINT);
  CHECK(std::filesystem::exists(folder / "run"));
  CHECK(on_ranks(1, saved_in(folder / "run")) == on_ranks(1, sk::FitOptions{}));
  const auto then = [&](void (*before)(int)) {
    return [=](const auto& begun) {
      ::signal(SIGPIPE, before);
      try {
        (void)on_ranks(1, sk::FitOptions{}, steps(begun));
      } catch (const sk::Interrupted&) {
        if (::signal(SIGPIPE, SIG_DFL) != before) throw std::runtime_error("SIGPIPE is not what it was");
        std::_Exit(42);
      }
    };
  };
  CHECK(in_a_process(then(SIG_DFL), 0, {SIGINT}).code() == 42);
  CHECK(in_a_process(then(SIG_IGN), 0, {SIGINT}).code() == 42);
}

TEST_CASE("a commit that fails after the signal is told", "[train]") {
  const support::TemporaryFolder folder;
  const Ended e = in_a_process(
      [&](const auto& begun) {
        begun();
        (void)on_ranks(1, saved_in(folder / "run"), [&](std::int64_t step) {
          if (step != 5) return;
          std::filesystem::remove_all(folder / "run");
          if (std::FILE* file = std::fopen((folder / "run").c_str(), "w")) std::fclose(file);
          ::raise(SIGINT);
        });
      },
      -1, {});
  CHECK(e.code() == 1);
  CHECK_THAT(e.said, Contains("program: ") && Contains(folder / "run"));
}

TEST_CASE("an exception that ends the fit is told, not the signal that came with it", "[train]") {
  const Ended e = in_a_process(
      [](const auto& begun) {
        begun();
        (void)on_ranks(1, sk::FitOptions{}, [](std::int64_t) {
          ::raise(SIGINT);
          throw std::runtime_error("the disk is full");
        });
      },
      -1, {});
  CHECK(e.code() == 1);
  CHECK_THAT(e.said, Contains("the disk is full"));
}

TEST_CASE("what a signal interrupts finds its errno, and one handler does not interrupt another", "[train]") {
  const Ended e = in_a_process(
      [](const auto& begun) {
        begun();
        (void)on_ranks(1, sk::FitOptions{}, [](std::int64_t step) {
          struct sigaction now {};
          ::sigaction(SIGINT, nullptr, &now);
          if (::sigismember(&now.sa_mask, SIGTERM) != 1) throw std::runtime_error("SIGTERM interrupts the handler of SIGINT");
          if (step != 3) return;
          const int stderr_copy = ::dup(2);
          ::close(2);  // the handler's write fails
          errno = 77;
          ::raise(SIGINT);
          const int kept = errno;
          ::dup2(stderr_copy, 2);
          if (kept != 77) throw std::runtime_error("errno is " + std::to_string(kept));
        });
      },
      -1, {});
  CHECK(e.said.find("errno") == std::string::npos);
  CHECK(e.code() == 128 + SIGINT);
}

TEST_CASE("fits at one time end by the signals of their own options", "[train]") {
  const Ended e = in_a_process(
      [](const auto& begun) {
        begun();
        std::promise<void> first_begun, second_ended;
        std::future<void> begun_first = first_begun.get_future(), ended_second = second_ended.get_future();
        std::string first_said, second_said;
        std::thread first([&] {
          try {
            (void)on_ranks(1, sk::FitOptions{.interrupt = {.on_signals = false, .also = SIGUSR1}}, [&](std::int64_t step) {
              if (step == 1) first_begun.set_value(), ended_second.wait();
              if (step == 4) ::kill(::getpid(), SIGUSR1);
              if (step >= 4) std::this_thread::sleep_for(100ms);  // another thread may handle it, late on a busy machine
            });
          } catch (const sk::Interrupted& i) { first_said = i.what(); }
        });
        begun_first.wait();
        try {
          (void)on_ranks(1, sk::FitOptions{}, [](std::int64_t step) {
            if (step == 3) ::raise(SIGINT);
          });
        } catch (const sk::Interrupted& i) { second_said = i.what(); }
        second_ended.set_value();
        first.join();
        throw std::runtime_error("first: " + first_said + "; second: " + second_said);
      },
      -1, {});
  CHECK(e.code() == 1);
  CHECK_THAT(e.said, Contains("first: fit: SIGUSR1 ended it") && Contains("second: fit: SIGINT ended it after step 3"));
}

TEST_CASE("a fit that begins within another is not ended by the signal that has ended that one", "[train]") {
  const Ended e = in_a_process(
      [](const auto& begun) {
        begun();
        std::string inner;
        sk::FitOptions o;
        o.callbacks.add(AtEnd{[&] {
          (void)on_ranks(1, sk::FitOptions{});
          try {
            (void)on_ranks(1, sk::FitOptions{}, [](std::int64_t step) {
              if (step == 6) ::raise(SIGTERM);
            });
          } catch (const sk::Interrupted& i) { inner = i.what(); }
        }});
        try {
          (void)on_ranks(1, o, [](std::int64_t step) {
            if (step == 3) ::raise(SIGINT);
          });
        } catch (const sk::Interrupted& i) { throw std::runtime_error("outer: " + std::string(i.what()) + "; inner: " + inner); }
      },
      -1, {});
  CHECK(e.code() == 1);
  CHECK_THAT(e.said,
             Contains("outer: fit: SIGINT ended it after step 3") && Contains("inner: fit: SIGTERM ended it after step 6"));
}

TEST_CASE("a signal that no program can keep is refused", "[train]") {
  for (const int also : {999, -1, SIGKILL, SIGSTOP, 65})
    CHECK_THROWS_WITH(on_ranks(1, sk::FitOptions{.interrupt = {.also = also}}),
                      Contains("fit: .interrupt.also is " + std::to_string(also) + ": give a signal that a program can keep"));
}
