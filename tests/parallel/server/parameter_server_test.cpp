// SPDX-License-Identifier: Apache-2.0
// ParameterServer over threads. tests/distributed/parameter_server.cpp has the bits, the bounds and the files over processes.
#include "../../support/parameter_server_cases.hpp"

#include <csignal>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include <skein/comm/sim/sim_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/core/clock.hpp>
#include <skein/nn/linear.hpp>
#include <skein/parallel/simulate/simulated.hpp>

#include "../../support/temporary_folder.hpp"

namespace cases = parameter_server_cases;
namespace sk = skein;
using sk::parallel::LateRate, sk::parallel::Staleness, sk::parallel::unbounded;

namespace {
void at(std::initializer_list<int> sizes, void (*function)(sk::ThreadComm&)) {
  for (int n : sizes) {
    INFO(n << " ranks");
    CHECK_NOTHROW(sk::spawn(n, function, {.deadline = 60}));
  }
}
/// The message that ends a program of these ranks.
template <class Function> std::string failure(int ranks, Function function, double deadline = 60) {
  try {
    sk::spawn(ranks, function, {.deadline = deadline});
  } catch (const sk::CommError& e) { return e.what(); }
  return "";
}
}  // namespace

TEST_CASE("a parameter server without staleness gives the bits of DataParallel", "[parallel]") {
  at({2, 3, 5}, [](sk::ThreadComm& w) { cases::equals_data_parallel(w, {.epochs = 1, .batch = 10}); });
  at({4}, [](sk::ThreadComm& w) {
    cases::equals_data_parallel(w,
                                {.epochs = 1, .batch = 10, .schedule = sk::optim::linear(0.1, 1, 8), .step = {.accumulate = 2}});
  });
}

TEST_CASE("asynchronous training: late gradients, a bound or none", "[parallel]") {
  at({2, 4}, [](sk::ThreadComm& w) {
    cases::trains<Staleness<unbounded>>(w, LateRate::constant);
    cases::trains<Staleness<2>>(w, LateRate::divided);
  });
}

TEST_CASE("how far workers run ahead of a slow one is the bound", "[parallel]") {
  double ahead[2] = {0, 0};
  sk::spawn(3,
            [&](sk::ThreadComm& w) {
              const double two = cases::ahead_of_a_slow_one<Staleness<2>>(w, 2),
                           any = cases::ahead_of_a_slow_one<Staleness<unbounded>>(w, 5);
              if (w.rank() == 0) ahead[0] = two, ahead[1] = any;
            },
            {.deadline = 60});
  CHECK(ahead[0] == 2);
  CHECK(ahead[1] > 4);
}

TEST_CASE("three workers and a server", "[parallel]") {
  const cases::Points points;
  const auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
  using Model = cases::Model;
  sk::History history;
  sk::parallel::ServerReport report;
  const double before = sk::seconds_now();
  // [quote parameter_server]
  sk::spawn(4, [&](sk::ThreadComm& world) {  // ranks 0 to 2 train; rank 3 has the weights
    Model model{sk::Seed{3}};
    sk::Trainer trainer{
        model, sk::nn::Mse{}, sk::optim::Adam{.lr = 0.01f},
        sk::parallel::ParameterServer{world, {.rate = sk::parallel::LateRate::divided}, sk::parallel::Staleness<4>{}}};
    const sk::History own = trainer.fit(data, {.epochs = 2, .batch = 12, .progress = false, .threads = 1});
    if (world.rank() != 0) return;  // on rank 3 it served until the others had ended
    history = own;
    report = trainer.train_step().policy_state().report();  // updates, staleness, how busy the server was
  });
  // [end]
  CHECK(report.seconds < sk::seconds_now() - before);
  CHECK(report.busy < report.seconds);
  CHECK(report.busy > 0);
  CHECK(history.size() == 2);
  CHECK(report.updates == 2 * 9 * 3);
  CHECK(report.max_ahead <= 4);
  CHECK(report.mean_staleness > 0);
}

TEST_CASE("a parameter server on a simulated network: the same bits, and a fast worker does not wait", "[parallel]") {
  const sk::FitOptions options{.epochs = 1, .batch = 12};
  std::vector<double> here, there;
  sk::spawn(3,
            [&](sk::ThreadComm& w) {
              cases::Training served{sk::parallel::ParameterServer{w, Staleness<0>{}}, sk::optim::Sgd{.lr = 0.05f}};
              (void)served.fit(options);
              if (w.rank() == 0) here = served.parameters();
            },
            {.deadline = 60});
  double waited = 0;
  const sk::SimOptions slow{.network = {{1e-6, 1e-10}, {1e-6, 1e-10}, 0, 0}, .slow = {1, 4}};
  const sk::parallel::ComputeTimes times = sk::parallel::compute_times(1e-3);
  const auto report = sk::simulate(3, slow, [&](sk::SimComm& w) {
    cases::Training served{sk::parallel::Simulated{sk::parallel::ParameterServer{w, Staleness<0>{}}, w, times},
                           sk::optim::Sgd{.lr = 0.05f}};
    (void)served.fit(options);
    if (w.rank() == 0) there = served.parameters();
  });
  CHECK(here == there);
  CHECK(report.ranks[0].waited > 9 * 2.9e-3);  // rank 1 takes four times as long, and each step waits for it
  (void)sk::simulate(3, slow, [&](sk::SimComm& w) {
    cases::Training served{sk::parallel::Simulated{sk::parallel::ParameterServer{w}, w, times}, sk::optim::Sgd{.lr = 0.05f}};
    auto& train_step = served.trainer.train_step();
    if (served.policy_state().serves()) train_step.serve([](std::int64_t) { return 1.0; });
    else cases::nine_steps(train_step);
    if (w.rank() == 0) waited = w.so_far().waited;
    (void)served.policy_state().finish();
  });
  CHECK(waited > 0);
  CHECK(waited < 1e-3);
}

TEST_CASE("a scaled loss is refused in a loop by hand too, as servers do not know the scale", "[parallel]") {
  const auto trains = [](bool scaled) {
    return [scaled](sk::ThreadComm& w) {
      sk::Model<sk::nn::Linear<3>, sk::Shape<4>, sk::Cpu, sk::precision::fp16> model{sk::Seed{3}};
      sk::train::TrainStep step{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, sk::parallel::ParameterServer{w}};
      if (!scaled) step.set_loss_scaling(sk::optim::LossScaling::none());
      if (step.policy_state().serves()) step.serve([](std::int64_t) { return 1.0; });
      else cases::nine_steps(step);
      (void)step.policy_state().finish();
    };
  };
  CHECK(failure(2, trains(false)).empty());
  CHECK(failure(2, trains(true)).find("a parameter server does not know the loss scale of 16-bit models") != std::string::npos);
}

TEST_CASE("a parameter server's training is saved and goes on", "[parallel]") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "served";
  CHECK_NOTHROW(sk::spawn(3, [&](sk::ThreadComm& w) { cases::saves_and_loads(w, path); }, {.deadline = 60}));
  CHECK_NOTHROW(sk::spawn(4, [&](sk::ThreadComm& w) { cases::saves_and_loads(w, path); }, {.deadline = 60}));
  for (const int ranks : {2, 3}) {
    CHECK_NOTHROW(sk::spawn(ranks, [&](sk::ThreadComm& w) { cases::saves_within_an_epoch<Staleness<0>>(w, path); }));
    CHECK_NOTHROW(
        sk::spawn(ranks, [&](sk::ThreadComm& w) { cases::saves_within_an_epoch<Staleness<sk::parallel::unbounded>>(w, path); }));
    CHECK_NOTHROW(sk::spawn(ranks, [&](sk::ThreadComm& w) { cases::goes_on_from_another_policy(w, path); }));
  }
}

namespace {
/// Acts at the end of a fit.
struct AtFitEnd {
  std::function<void()> act;
  void on_fit_end(const sk::History&) { act(); }
};
}  // namespace

TEST_CASE("a save in an on_fit_end, where the servers have left the fit, is refused, and one after fit is not", "[parallel]") {
  const support::TemporaryFolder folder;
  std::string said[3];
  CHECK_NOTHROW(sk::spawn(3,
                          [&](sk::ThreadComm& world) {
                            cases::Training served{sk::parallel::ParameterServer{world, Staleness<0>{}}, sk::optim::Adam{}};
                            const auto save = [&] {
                              try {
                                served.trainer.save(folder / "early");
                              } catch (const sk::ArgumentError& e) { said[world.rank()] = e.what(); }
                            };
                            (void)served.fit({.batch = 10, .callbacks = {AtFitEnd{save}}});
                            served.trainer.save(folder / "late");
                          },
                          {.deadline = 5}));
  for (int worker = 0; worker < 2; ++worker)
    CHECK_THAT(said[worker], Catch::Contains("save: in on_fit_end") && Catch::Contains("call trainer.save(path) after fit"));
  CHECK(said[2].empty());  // a server runs no callbacks
  CHECK(std::filesystem::exists(folder / "late"));
}

TEST_CASE("the step of a late gradient is divided by the updates that it missed", "[parallel]") {
  using Message = sk::parallel::detail::ServerMessage;
  for (LateRate rate : {LateRate::constant, LateRate::divided}) {
    std::vector<double> scales;
    sk::spawn(
        3,
        [&](sk::ThreadComm& world) {
          std::vector<float> parameters(16), gradients(16);
          if (world.rank() == 2) {
            sk::parallel::Replica<float, sk::Cpu> replica;
            replica.parameters = {parameters.data(), 16};
            replica.gradients = {gradients.data(), 16};
            replica.stored = 16;
            replica.placement = sk::plan::Placement::sliced({{}, {}, {0, 16}}, 2);
            std::int64_t version = 10;
            const auto keep = [](void* object, const sk::parallel::ShardUpdate& u) {
              static_cast<std::vector<double>*>(object)->push_back(u.rate);
              RANK_CHECK(u.scale == 0.25);
            };
            const sk::parallel::UpdateCallback note{&scales, keep};
            const auto report =
                sk::parallel::ServerLoop<sk::ThreadComm, float, unbounded>(world, replica, {.rate = rate}, 2).run(note, version);
            RANK_CHECK(version == 14);
            RANK_CHECK(report.max_staleness == 3);
            RANK_CHECK(report.mean_staleness == 0.75);
            return;
          }
          const auto push = [&](std::int64_t step, std::int64_t version) {
            Message m{Message::Push, world.rank(), step, version, 2, 8};
            world.send(sk::DeviceSpan<const Message>(&m, 1), 2, Message::tag);
            world.send(gradients, 2, Message::values_tag);
            sk::parallel::detail::ServerReply reply;
            world.recv(sk::DeviceSpan<sk::parallel::detail::ServerReply>(&reply, 1), 2, Message::reply_tag);
            world.recv(parameters, 2, Message::reply_values_tag);
            return reply.version;
          };
          int turn = 0;
          if (world.rank() == 0) {
            std::int64_t version = 10;
            for (int step = 1; step <= 3; ++step) version = push(step, version);
            world.send(sk::DeviceSpan<int>(&turn, 1), 1, 7);
          } else {
            world.recv(sk::DeviceSpan<int>(&turn, 1), 0, 7);
            RANK_CHECK(push(1, 10) == 14);
          }
          Message done{Message::Done, world.rank()};
          world.send(sk::DeviceSpan<const Message>(&done, 1), 2, Message::tag);
        },
        {.deadline = 60});
    CHECK(scales == std::vector<double>{1, 1, 1, rate == LateRate::constant ? 1.0 : 1.0 / 3});
  }
}

TEST_CASE("a parameter server's ranks all have the weights that a callback kept", "[parallel]") {
  std::vector<double> kept[3], last[3];
  sk::spawn(3,
            [&](sk::ThreadComm& world) {
              const auto at = static_cast<std::size_t>(world.rank());
              cases::Training served{sk::parallel::ParameterServer{world, Staleness<0>{}}, sk::optim::Sgd{}};
              const auto weights = [&] {
                const auto w = served.model.parameters();
                return std::vector<double>(w.begin(), w.end());
              };
              (void)served.fit({.epochs = 3, .batch = 10, .callbacks = {[&](sk::train::EpochRecord& r, sk::train::FitControl& c) {
                                                            if (r.epoch == 1) c.keep_weights(), kept[at] = weights();
                                                          }}});
              last[at] = weights();
            },
            {.deadline = 20});
  CHECK(last[0] == kept[0]);
  CHECK(last[1] == kept[0]);
  CHECK(last[2] == kept[0]);
}

TEST_CASE("a signal that a server says in its last answer ends no fit", "[parallel]") {
  CHECK_NOTHROW(sk::spawn(2, [](sk::ThreadComm& w) {
    for (const int ends : {0, SIGINT}) {  // by which the worker's fit has ended
      cases::Training served{sk::parallel::ParameterServer{w, Staleness<0>{}}, sk::optim::Sgd{.lr = 0.05f}};
      auto& train_step = served.trainer.train_step();
      if (served.policy_state().serves()) {
        train_step.serve([](std::int64_t) { return 1.0; }, 0, [] { return SIGTERM; });
        RANK_CHECK(served.policy_state().signal() == ends);
      } else {
        cases::nine_steps(train_step);
        RANK_CHECK(served.policy_state().signal() == SIGTERM);  // of the step before the last
        served.policy_state().set_signal(ends);
      }
      (void)served.policy_state().finish();
      RANK_CHECK(served.policy_state().signal() == (served.policy_state().serves() ? ends : 0));
    }
  }));
}

TEST_CASE("a parameter server refuses what cannot work, on all ranks", "[parallel]") {
  const auto with = [](int servers, double clip) {
    return [=](sk::ThreadComm& world) {
      cases::Training served{sk::parallel::ParameterServer{world, {.servers = servers}}, sk::optim::Sgd{}};
      (void)served.fit({.batch = 10, .clip_norm = clip});
    };
  };
  CHECK(failure(2, with(2, 0)).find("at least one rank that trains") != std::string::npos);
  CHECK(failure(2, with(0, 0)).find("at least one server") != std::string::npos);
  CHECK(failure(2, with(1, 1)).find(".clip_norm") != std::string::npos);
  const auto differ = [](sk::ThreadComm& world) {
    if (world.rank() == 0) cases::Training{sk::parallel::ParameterServer{world, Staleness<1>{}}, sk::optim::Sgd{}};
    else cases::Training{sk::parallel::ParameterServer{world, Staleness<2>{}}, sk::optim::Sgd{}};
  };
  CHECK(failure(3, differ).find("models of ParameterServer") != std::string::npos);
  const auto no_rate = [](sk::ThreadComm& world) {
    cases::Training{sk::parallel::ParameterServer{world, {.rate = static_cast<LateRate>(7)}}, sk::optim::Sgd{}};
  };
  CHECK(failure(2, no_rate)
            .find("ParameterServer: .rate is 7, and no value of its enumeration has that number: give constant or "
                  "divided") != std::string::npos);
}
