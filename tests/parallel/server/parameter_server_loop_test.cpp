// SPDX-License-Identifier: Apache-2.0
// Ranks that are missing at a server, over threads: who is named, and who is not.
#include "skein/parallel/server/parameter_server_loop.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <skein/comm/thread/spawn.hpp>

#include "../../support/parameter_server_cases.hpp"
#include "../../support/temporary_folder.hpp"
#include "../../support/thrown.hpp"

namespace cases = parameter_server_cases;
namespace sk = skein;
using sk::parallel::Staleness;

namespace {
/// Stands still until another rank has given up, however late a busy machine lets it.
void wait_for_failure(sk::ThreadComm& world) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!world.engine().team().failure->happened() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
/// A deadline by which a server that stands still for two seconds names the missing before a worker names the server.
constexpr double patience = 8;
/// The message that ends a program of these ranks.
template <class Function> std::string failure(int ranks, const Function& function, double deadline) {
  return support::thrown([&] { sk::spawn(ranks, function, {.deadline = deadline}); });
}
}  // namespace

TEST_CASE("who is missing at a parameter server is named", "[parallel]") {
  const auto hang = [](sk::ThreadComm& world) {
    cases::Training served{sk::parallel::ParameterServer{world, Staleness<1>{}}, sk::optim::Sgd{}};
    if (world.rank() == 1) {  // is there, but never trains
      wait_for_failure(world);
      return;
    }
    if (world.rank() == 2) {  // a server
      const sk::parallel::UpdateCallback note{nullptr, [](void*, const sk::parallel::ShardUpdate&) {}};
      served.policy_state().serve(note);
    }
    cases::nine_steps(served.trainer.train_step());
  };
  const std::string message = failure(3, hang, patience);
  INFO(message);
  CHECK(message.find("rank 1 did not arrive within 8 s") != std::string::npos);
}

TEST_CASE("who waits at the end of an epoch for another is not named beside it", "[parallel]") {
  struct Sleeps {
    sk::ThreadComm* world;
    void on_update(std::int64_t step) const {
      if (world->rank() == 1 && step == 3) wait_for_failure(*world);
    }
  };
  const auto fit = [](sk::ThreadComm& world) {
    cases::Training served{sk::parallel::ParameterServer{world}, sk::optim::Sgd{}};
    (void)served.fit({.epochs = 1, .batch = 10, .callbacks = {Sleeps{&world}}});
  };
  CHECK_THAT(failure(3, fit, 2.5), Catch::Contains("rank 1 did not arrive within") && !Catch::Contains("ranks"));
}

namespace {
/// A set of the user's whose reading stands still once it is told to.
struct StandsStill {
  skein::data::DatasetView set;
  sk::ThreadComm* world;
  const bool* now;
  std::int64_t size() const { return set.size(); }
  sk::Extents sample_extents() const { return set.sample_extents(); }
  sk::data::Target target() const { return set.target(); }
  template <class Scalar> void serve(sk::data::Indices indices, const sk::data::Destination<Scalar>& to) const {
    if (*now) wait_for_failure(*world);
    set.serve(indices, to);
  }
};
/// What ends a fit in which rank 1 stands still before the first step of the second epoch.
template <int Bound> std::string stands_still() {
  return failure(
      3,
      [&](sk::ThreadComm& world) {
        cases::Training served{sk::parallel::ParameterServer{world, Staleness<Bound>{}}, sk::optim::Sgd{}};
        bool now = false;
        const auto begins = [&](int epoch, sk::train::FitControl&) { now = epoch == 2 && world.rank() == 1; };
        struct Begins {
          std::function<void(int, sk::train::FitControl&)> call;
          void on_epoch_begin(int epoch, sk::train::FitControl& control) { call(epoch, control); }
        };
        const StandsStill data{served.data, &world, &now};
        sk::FitOptions options{.epochs = 3, .batch = 10, .callbacks = {Begins{begins}}, .progress = false, .threads = 1};
        options.loader.prefetch = sk::data::Prefetch::off;
        served.trainer.fit(data, options);
      },
      patience);
}
}  // namespace

TEST_CASE("who stands still before its first step of an epoch is named, and not the server, nor who waits for it", "[parallel]") {
  std::vector<std::future<std::string>> told;  // each waits for a deadline
  for (const auto& fit : {stands_still<0>, stands_still<1>}) told.push_back(std::async(std::launch::async, fit));
  for (auto& each : told)
    CHECK_THAT(each.get(), Catch::Contains("rank 1 did not arrive within 8 s") && !Catch::Contains("ranks"));
}

TEST_CASE("a parameter server waits while all evaluate for longer than its deadline, and ends where all have left their fit",
          "[parallel]") {
  const auto fit = [](auto bound, const auto& callback) {
    return [=](sk::ThreadComm& world) {
      cases::Training served{sk::parallel::ParameterServer{world, bound}, sk::optim::Sgd{}};
      try {
        (void)served.fit({.epochs = 2, .batch = 50, .callbacks = {callback}});
      } catch (const std::runtime_error& e) {
        if (std::string(e.what()) != "mine") throw;
      }
    };
  };
  const auto evaluates = [](sk::train::EpochRecord& r, sk::train::FitControl&) {
    if (r.epoch == 1) std::this_thread::sleep_for(std::chrono::milliseconds(6500));
  };
  CHECK(failure(3, fit(Staleness<0>{}, evaluates), 3) == "");
  CHECK(failure(3, fit(Staleness<2>{}, evaluates), 3) == "");
  struct Throws {
    void on_update(std::int64_t) const { throw std::runtime_error("mine"); }
  };
  const std::string message = failure(3, fit(Staleness<2>{}, Throws{}), 20);
  CHECK(message.find("on rank 2 in fit: all other ranks have returned") != std::string::npos);
}

TEST_CASE("a server that saves alone is told that it is in save", "[parallel]") {
  const support::TemporaryFolder folder;
  const auto alone = [&](sk::ThreadComm& world, bool stays) {
    cases::Training served{sk::parallel::ParameterServer{world}, sk::optim::Adam{}};
    (void)served.fit({.epochs = 1, .batch = 10});
    if (world.rank() == 2) served.trainer.save(folder / "alone.skein");
    else if (stays) wait_for_failure(world);
  };
  CHECK_THAT(failure(
                 3, [&](sk::ThreadComm& world) { alone(world, true); }, 2.5),
             Catch::Contains("save is a call of all ranks: rank 0 has not called it within 2.5 s"));
  CHECK_THAT(failure(
                 3, [&](sk::ThreadComm& world) { alone(world, false); }, 20),
             Catch::Contains("on rank 2 in save: that rank has returned"));
}
