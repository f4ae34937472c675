// SPDX-License-Identifier: Apache-2.0
// Training with chains of gradient transforms: against a twin in plain loops, on any number of threads and ranks, and resumed.
#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/clip_value.hpp>
#include <skein/optim/transform/lamb.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/optim/transform/muon.hpp>
#include <skein/parallel/data/reproducible.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/server/parameter_server.hpp>

#include "../../support/shard_cases.hpp"
#include "../../support/temporary_folder.hpp"
#include "../../support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Net = nn::Sequential<nn::Flatten, nn::Linear<21>, nn::Relu, nn::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<6, 6, 1>, sk::Cpu, double>;
using Values = std::vector<double>;

const auto lars_chain = optim::chain(optim::ClipNorm{0.3f}, optim::Lars{.trust = 0.05f, .weight_decay = 0.01f},
                                     optim::Sgd{.lr = 0.5f, .momentum = 0.9});
const auto norm_after = optim::chain(optim::ClipValue{0.02f}, optim::Lars{.trust = 0.05f}, optim::ClipNorm{0.01f},
                                     optim::Sgd{.lr = 0.5f, .momentum = 0.9});

template <class Policy, class Optimizer>
auto train(const Policy& policy, const Optimizer& optimizer, int threads, double clip = 0) {
  return shard_cases::train<Net, double>(policy, {.epochs = 3, .batch = 19, .clip_norm = clip, .threads = threads}, optimizer);
}

double norm(const Values& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}
/// The logical values of a parameter.
Values read(const double* arena, const sk::plan::Entry& e) {
  Values v;
  const long columns = e.extents.last();
  for (long i = 0; i < e.extents.count(); ++i) v.push_back(arena[e.offset + i / columns * sk::row_pitch(columns) + i % columns]);
  return v;
}
void write(double* arena, const sk::plan::Entry& e, const Values& v) {
  const long columns = e.extents.last();
  for (long i = 0; i < e.extents.count(); ++i)
    arena[e.offset + i / columns * sk::row_pitch(columns) + i % columns] = v[static_cast<std::size_t>(i)];
}

/// Training in plain loops: transform(parameters, gradients) changes the gradients, one vector a parameter.
template <class Transform> Values naive(const Transform& transform) {
  const shard_cases::Images images;
  const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
  Model model{sk::Seed{3}};
  sk::Executor<Model, nn::CrossEntropy> executor(model, nn::CrossEntropy{}, {.capacity = 61, .threads = 1});
  sk::data::Loader<double> loader(data, {.batch = 61, .shuffle = false});
  std::vector<Values> momentum;
  for (int epoch = 0; epoch < 4; ++epoch)
    for (const sk::data::Batch<double>& batch : loader.epoch(0)) {
      executor.forward_backward(batch, {.scale = 1.0 / 61});
      std::vector<Values> values, gradients;
      for (const sk::plan::Entry& e : Model::program.parameters()) {
        values.push_back(read(std::as_const(model).parameters().data, e));
        gradients.push_back(read(model.gradients().data, e));
      }
      transform(values, gradients);
      momentum.resize(values.size());
      for (std::size_t k = 0; k < values.size(); ++k) {
        momentum[k].resize(values[k].size());
        for (std::size_t i = 0; i < values[k].size(); ++i) {
          momentum[k][i] = 0.9 * momentum[k][i] + gradients[k][i];
          values[k][i] -= 0.5 * momentum[k][i];
        }
        const auto weights = model.modify();
        write(weights.data(), Model::program.parameters()[k], values[k]);
      }
    }
  return {std::as_const(model).parameters().begin(), std::as_const(model).parameters().end()};
}
void clip(std::vector<Values>& gradients, double most) {
  Values all;
  for (const Values& g : gradients) all.insert(all.end(), g.begin(), g.end());
  const double factor = std::min(1.0, most / (norm(all) + 1e-6));
  for (Values& g : gradients)
    for (double& x : g) x *= factor;
}
/// You, Gitman, Ginsburg, arXiv:1708.03888: lambda = trust |w| / (|g| + decay |w|); g = lambda (g + decay w).
void lars(const std::vector<Values>& values, std::vector<Values>& gradients, double trust, double decay) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double w = norm(values[k]), g = norm(gradients[k]);
    if (w == 0 || g == 0) continue;
    const double lambda = trust * w / (g + decay * w);
    for (std::size_t i = 0; i < values[k].size(); ++i) gradients[k][i] = lambda * (gradients[k][i] + decay * values[k][i]);
  }
}
template <class Optimizer> Values trained(const Optimizer& optimizer, int threads) {
  const shard_cases::Images images;
  const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, optimizer};
  trainer.fit(data, {.epochs = 4, .batch = 61, .progress = false, .threads = threads, .loader = {.shuffle = false}});
  return {std::as_const(model).parameters().begin(), std::as_const(model).parameters().end()};
}
void check_close(const Values& a, const Values& b, double tolerance = 1e-9) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(tolerance).epsilon(0));
}
}  // namespace

TEST_CASE("LARS behind a norm is the paper's, on any number of threads", "[train]") {
  const Values expected = naive([](const std::vector<Values>& values, std::vector<Values>& gradients) {
    clip(gradients, static_cast<double>(0.3f));
    lars(values, gradients, static_cast<double>(0.05f), static_cast<double>(0.01f));
  });
  for (int threads : {1, 2, 3}) check_close(trained(lars_chain, threads), expected);
  const auto without = trained(optim::Sgd{.lr = 0.5f, .momentum = 0.9}, 1);
  CHECK(without != expected);
}

TEST_CASE("A norm behind tensors, elements before both: each in its turn", "[train]") {
  const Values expected = naive([](const std::vector<Values>& values, std::vector<Values>& gradients) {
    const double limit = static_cast<double>(0.02f);
    for (Values& g : gradients)
      for (double& x : g) x = std::clamp(x, -limit, limit);
    lars(values, gradients, static_cast<double>(0.05f), 0);
    clip(gradients, static_cast<double>(0.01f));
  });
  for (int threads : {1, 2, 3}) check_close(trained(norm_after, threads), expected);
}

TEST_CASE("ClipNorm at the head of a chain is .clip_norm, to the bit; both are refused", "[train]") {
  const optim::Sgd sgd{.lr = 0.5f, .momentum = 0.9};
  const auto chain = optim::chain(optim::ClipNorm{0.05f}, sgd);
  for (int threads : {1, 2}) {
    const auto by_option = train(sk::parallel::SingleProcess{}, sgd, threads, static_cast<double>(0.05f));
    CHECK(train(sk::parallel::SingleProcess{}, chain, threads) == by_option);
    CHECK(by_option.parameters != train(sk::parallel::SingleProcess{}, sgd, threads).parameters);
  }
  CHECK_THROWS_WITH(
      train(sk::parallel::SingleProcess{}, chain, 1, 1.0),
      Catch::Contains(".clip_norm and a ClipNorm in the optimizer's chain would clip twice: leave one of them out"));
}

TEST_CASE("A chain trains alike on any number of ranks", "[train]") {
  const auto each = [](const auto& chain) {
    const auto serial = train(sk::parallel::SingleProcess{}, chain, 1);
    for (int ranks : {2, 3})
      sk::spawn(ranks, [&](sk::ThreadComm& world) {
        const auto r = train(sk::parallel::DataParallel{world}, chain, 1 + world.rank() % 2);
        for (std::size_t i = 0; i < r.parameters.size(); ++i)
          RANK_CHECK(r.parameters[i] == Approx(serial.parameters[i]).margin(1e-9).epsilon(0));
      });
  };
  each(lars_chain);
  each(norm_after);
}

TEST_CASE("Sharded takes elementwise transforms and norms", "[train]") {
  const auto chain = optim::chain(optim::ClipNorm{0.2f}, optim::ClipValue{0.02f}, optim::ClipNorm{0.05f},
                                  optim::Sgd{.lr = 0.5f, .momentum = 0.9});
  const auto serial = train(sk::parallel::SingleProcess{}, chain, 1);
  CHECK(serial.parameters !=
        train(sk::parallel::SingleProcess{}, optim::chain(optim::ClipNorm{0.2f}, chain.optimizer()), 1).parameters);
  sk::spawn(3, [&](sk::ThreadComm& world) {
    for (const auto& r : {train(sk::parallel::DataParallel{world, sk::parallel::Sharded<1>{}}, chain, 2),
                          train(sk::parallel::DataParallel{world, sk::parallel::Sharded<2>{}}, chain, 1)})
      for (std::size_t i = 0; i < r.parameters.size(); ++i)
        RANK_CHECK(r.parameters[i] == Approx(serial.parameters[i]).margin(1e-9).epsilon(0));
  });
}

TEST_CASE("Under Sharded a transform of tensors makes slices end at parameters", "[train]") {
  namespace parallel = sk::parallel;
  for (const int ranks : {1, 2, 3, 4, 7}) {
    const auto serial = train(parallel::SingleProcess{}, lars_chain, 1), behind = train(parallel::SingleProcess{}, norm_after, 1);
    sk::spawn(ranks, [&](sk::ThreadComm& world) {
      const int threads = 1 + world.rank() % 2;
      const auto whole = train(parallel::DataParallel{world}, norm_after, threads);
      const auto alike = [&](const auto& policy) {
        shard_cases::require_close(train(policy, lars_chain, threads), serial, 1e-9);
        const auto r = train(policy, norm_after, threads);
        shard_cases::require_close(r, behind, 1e-9);
        shard_cases::require_close(r, whole, 1e-12);  // sums over the ranks are in one order; norms over owners are not
      };
      alike(parallel::DataParallel{world, parallel::Sharded<1>{}});
      alike(parallel::DataParallel{world, {.bucket_bytes = 1}, parallel::Sharded<2>{}});
    });
  }
}

TEST_CASE("Under Reproducible a chain gives the same bits on any number of ranks and threads", "[train]") {
  const auto bits = [](int ranks, int threads) {
    shard_cases::Result<double> result;
    sk::spawn(ranks, [&](sk::ThreadComm& world) {
      auto r = train(sk::parallel::DataParallel{world, sk::parallel::Reproducible<4>{}}, norm_after, threads);
      if (world.rank() == 0) result = std::move(r);
    });
    return result;
  };
  const auto one = bits(1, 1);
  CHECK(bits(1, 3) == one);
  CHECK(bits(2, 2) == one);
  CHECK(bits(4, 1) == one);
}

namespace {
struct Halve {
  static constexpr auto needs = optim::Needs::element;
  static constexpr int state_arrays() { return 1; }
  template <class S> constexpr S element(const optim::UpdateRates<S>&, S gradient, S, S* state) const {
    return state[0] = S(0.5) * (state[0] + gradient);
  }
};
}  // namespace

TEST_CASE("A checkpoint has the state of a chain: a training that is resumed has the same bits", "[train]") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "training";
  const auto chain = optim::chain(Halve{}, optim::Lamb{}, Halve{}, optim::Sgd{.lr = 0.01f, .momentum = 0.9});
  CHECK(chain.state_arrays() == 5);
  const shard_cases::Images images;
  const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
  const auto epoch = [&](auto& trainer, int epochs = 1) {  // after load() all that there are to be
    trainer.fit(data, {.epochs = epochs, .batch = 19, .seed = sk::Seed{5}, .progress = false, .threads = 1});
  };
  Model model{sk::Seed{3}}, other{sk::Seed{4}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, chain}, resumed{other, nn::CrossEntropy{}, chain};
  epoch(trainer);
  trainer.save(path);
  resumed.load(path);
  for (int k = 0; k < 5; ++k) {
    const int array = sk::parallel::training_arrays::optimizer + k;
    const auto a = trainer.train_step().arrays().whole(array), b = resumed.train_step().arrays().whole(array);
    CHECK(std::equal(a.begin(), a.end(), b.begin()));
    CHECK(std::any_of(a.begin(), a.end(), [](double v) { return v != 0; }));
  }
  epoch(trainer);
  epoch(resumed, 2);
  CHECK(std::equal(model.gradients().begin(), model.gradients().end(), other.gradients().begin()));
  CHECK(Values(std::as_const(model).parameters().begin(), std::as_const(model).parameters().end()) ==
        Values(std::as_const(other).parameters().begin(), std::as_const(other).parameters().end()));
}

TEST_CASE("A checkpoint of slices that end at parameters is whole: it goes on in any others", "[train]") {
  namespace parallel = sk::parallel;
  const support::TemporaryFolder folder;
  const auto chain = optim::chain(optim::Muon{}, optim::Lars{.trust = 0.05f}, optim::Sgd{.lr = 0.1f, .momentum = 0.9});
  const shard_cases::Images images;
  const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
  /// Loads `from` where it is not empty, trains an epoch, saves as `to`.
  const auto epoch = [&](const auto& policy, const std::string& from, const std::string& to) {
    Model model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, chain, policy};
    if (!from.empty()) trainer.load(folder / from);
    trainer.fit(data, {.epochs = from.empty() ? 1 : 2, .batch = 19, .seed = sk::Seed{5}, .progress = false, .threads = 1});
    if (!to.empty()) trainer.save(folder / to);
    return Values(std::as_const(model).parameters().begin(), std::as_const(model).parameters().end());
  };
  const auto on = [&](int ranks, const auto& make, const std::string& from, const std::string& to) {
    Values result;
    sk::spawn(ranks, [&](sk::ThreadComm& world) {
      const Values own = epoch(make(world), from, to);
      if (world.rank() == 0) result = own;
    });
    return result;
  };
  const auto level_1 = [](sk::ThreadComm& world) { return parallel::DataParallel{world, parallel::Sharded<1>{}}; };
  const auto level_2 = [](sk::ThreadComm& world) { return parallel::DataParallel{world, parallel::Sharded<2>{}}; };
  const auto served = [](sk::ThreadComm& world) {
    return parallel::ParameterServer{world, {.servers = 2}, parallel::Staleness<0>{}};
  };
  (void)epoch(parallel::SingleProcess{}, "", "whole.1");
  const Values expected = epoch(parallel::SingleProcess{}, "whole.1", "");
  (void)on(3, level_1, "", "sharded.1");
  check_close(epoch(parallel::SingleProcess{}, "sharded.1", ""), expected);
  check_close(on(2, level_2, "sharded.1", ""), expected);
  check_close(on(4, level_2, "whole.1", ""), expected);
  (void)on(4, served, "", "served.1");
  check_close(on(7, level_1, "served.1", ""), expected);
}

namespace {
// [quote own_placement]
/// A policy with slices of its own: the last of two ranks has three quarters. It does not ask who wants rows whole.
struct Uneven : sk::parallel::DataParallel<sk::ThreadComm, sk::parallel::Sharded<2>> {
  using DataParallel::DataParallel;
  sk::plan::Placement placement(const sk::plan::ArenaTable& table) const {
    const long cut = table.stored / 4;
    return sk::plan::Placement::sliced({{0, cut}, {cut, table.stored}}, comm().rank());
  }
};
// [end]
/// Slices, and nobody who gathers them.
struct Scattered : sk::parallel::SingleProcess {
  sk::plan::Placement placement(const sk::plan::ArenaTable& table) const {
    return sk::plan::Placement::sliced({{0, table.stored / 2}}, 0);
  }
};
}  // namespace

TEST_CASE("A placement of one's own is as good, but for rows that it cuts where they are wanted whole", "[train]") {
  const auto chain = optim::chain(optim::ClipNorm{0.2f}, optim::Sgd{.lr = 0.5f, .momentum = 0.9});
  const auto serial = train(sk::parallel::SingleProcess{}, chain, 1);
  sk::spawn(2, [&](sk::ThreadComm& world) {
    shard_cases::require_close(train(Uneven{world}, chain, 2), serial, 1e-9);
    const std::string said = support::thrown<sk::ArgumentError>([&] { (void)train(Uneven{world}, lars_chain, 1); });
    RANK_CHECK(said.find("cuts a parameter that a transform of tensors (Lars) sees as a whole") != std::string::npos);
  });
  CHECK(support::thrown<sk::ArgumentError>([&] {
          (void)train(Scattered{}, chain, 1);
        }).find("declares no Capability::owns_part") != std::string::npos);
}

TEST_CASE("Ranks whose slices differ refuse to start", "[train]") {
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const auto policy = sk::parallel::DataParallel{world, sk::parallel::Sharded<1>{}};
    const auto start = [&](const auto& optimizer) {
      Model model{sk::Seed{3}};
      return support::thrown([&] { sk::Trainer{model, nn::CrossEntropy{}, optimizer, policy}; });
    };
    const std::string said = world.rank() == 0 ? start(optim::chain(optim::Sgd{})) : start(lars_chain);
    RANK_CHECK(said.find("the models of DataParallel") != std::string::npos);
  });
}

TEST_CASE("Frozen parameters are no part of any stage, and a group's decay factor is LARS's", "[train]") {
  const auto frozen =
      optim::chain(optim::Lars{.trust = 0.05f, .weight_decay = 0.5f}, optim::Sgd{.lr = 0.5f, .groups = optim::frozen("1.*")});
  auto without = frozen, halved = frozen;
  without.groups = {};
  halved.groups = optim::weight_decay("*", 0.5f);
  const Model initial{sk::Seed{3}};
  const auto at = static_cast<std::size_t>(Model::parameter("1.weight").offset);
  CHECK(trained(frozen, 2)[at] == initial.parameters().data[at]);
  CHECK(trained(without, 2)[at] != initial.parameters().data[at]);
  const auto gentle = optim::chain(optim::Lars{.trust = 0.05f, .weight_decay = 0.25f}, optim::Sgd{.lr = 0.5f});
  CHECK(trained(halved, 1) == trained(gentle, 1));
}
