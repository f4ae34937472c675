// SPDX-License-Identifier: Apache-2.0
// Kfac beside recorded runs of kfac-pytorch (the same weights, batches and settings), on any number of workers, and resumed. The
// runs lie in the folder that SKEIN_DATA names, below kfac/; without them a shorter one of tests/fixtures remains. Their inverses
// and eigenvectors were made in float32, so what is divided by them agrees to that: the recorded gradients are divided again by
// the recorded factors, in double and in plain loops, and ours agree with that to 1e-10.
#include <skein/optim/kfac/kfac.hpp>

#include <cstdlib>
#include <filesystem>

#include <catch2/catch.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/tensor/npz.hpp>
#include <skein/train/trainer.hpp>

#include "../../support/larger.hpp"
#include "../../support/naive_curvature.hpp"
#include "../../support/small_images.hpp"
#include "../../support/temporary_folder.hpp"
#include "fixtures/kfac.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Values = std::vector<double>;
using Mlp = nn::Sequential<nn::Linear<9>, nn::Tanh, nn::Linear<7>, nn::Tanh, nn::Linear<4>>;
using Cnn =
    nn::Sequential<nn::Conv2d<3, sk::Kernel<3>, sk::Padding<1>>, nn::Relu,
                   nn::Conv2d<4, sk::Kernel<3>, sk::Stride<2>, sk::Padding<1>, sk::NoBias>, nn::Relu, nn::Flatten, nn::Linear<5>>;
template <class Scalar> using MlpModel = sk::Model<Mlp, sk::Shape<6>, sk::Cpu, Scalar>;
template <class Scalar> using CnnModel = sk::Model<Cnn, sk::Shape<6, 6, 2>, sk::Cpu, Scalar>;

/// Row i of our matrices (inputs, outputs) is theirs[i]: they have the channels of an image first.
std::vector<long> channels_first(long channels, long pixels) {
  std::vector<long> order;
  for (long p = 0; p < pixels; ++p)
    for (long c = 0; c < channels; ++c) order.push_back(c * pixels + p);
  return order;
}
std::vector<long> as_they_are(long n) { return channels_first(n, 1); }

/// What a run is made of: values by the names of the files.
struct Recorded {
  virtual ~Recorded() = default;
  virtual Values get(const std::string& name) const = 0;
};
struct File final : Recorded {
  explicit File(const std::string& path) : file(sk::load_npz(path)) {}
  Values get(const std::string& name) const override {
    const auto flat = [](const auto& t) { return Values(t.data(), t.data() + t.size()); };
    if (name.ends_with(".y")) return flat(file.get<std::int64_t, 1>(name));
    for (int rank : {1, 2, 4}) {
      try {
        return rank == 1   ? flat(file.get<double, 1>(name))
               : rank == 2 ? flat(file.get<double, 2>(name))
                           : flat(file.get<double, 4>(name));
      } catch (const sk::Error&) {
        if (rank == 4) throw;
      }
    }
    return {};
  }
  sk::NpzFile file;
};
struct Fixture final : Recorded {
  Values get(const std::string& name) const override { return fixtures::kfac_mlp.at(name); }
};

/// One layer of a run: its number, and how their inputs are ordered.
struct Layer {
  int number;
  long outputs;
  bool bias;
  std::vector<long> order;
};
struct Case {
  std::vector<Layer> layers;
  std::vector<long> pixels;  // of a sample
  sk::Extents input;
  double lr = static_cast<double>(0.05f);
};
const Case mlp{
    {{0, 9, true, as_they_are(6)}, {2, 7, true, as_they_are(9)}, {4, 4, true, as_they_are(7)}}, as_they_are(6), {1, {6}}};
const Case cnn{{{0, 3, true, channels_first(2, 9)}, {2, 4, false, channels_first(3, 9)}, {5, 5, true, channels_first(4, 9)}},
               channels_first(2, 36),
               {3, {6, 6, 2}}};

std::string key(int step, const std::string& what) { return "step" + std::to_string(step) + "." + what; }
Values permuted(const Values& v, const std::vector<long>& order) {
  Values result;
  const long n = static_cast<long>(order.size());
  for (long row = 0; row < static_cast<long>(v.size()) / n; ++row)
    for (long i : order) result.push_back(v[static_cast<std::size_t>(row * n + i)]);
  return result;
}

template <class Model> class Run {
 public:
  using Scalar = typename Model::Scalar;

  template <class Optimizer> static void follow(const Case& c, const Recorded& recorded, const Optimizer& optimizer, int steps,
                                                int threads, double tolerance, double of_factors) {
    Model model{sk::Seed{1}};
    set_weights(model, c, recorded, 0);
    sk::train::TrainStep step(model, nn::CrossEntropy{}, optimizer, sk::parallel::SingleProcess{});
    const long batch = static_cast<long>(recorded.get("step0.y").size());
    step.reserve({.capacity = batch, .threads = threads});
    for (int s = 0; s < steps; ++s) {
      const Values x = permuted(recorded.get(key(s, "x")), c.pixels), y = recorded.get(key(s, "y"));
      const auto data =
          sk::data::from_tensors(std::vector<Scalar>(x.begin(), x.end()), c.input, std::vector<std::int32_t>(y.begin(), y.end()));
      sk::data::Loader<Scalar> loader(data, {.batch = batch, .shuffle = false});
      Values before;
      for (const Layer& l : c.layers) append(before, matrix(model, l));
      for (const auto& b : loader.epoch(0)) step.step(b);
      Values after, theirs_divided;
      for (const Layer& l : c.layers) append(after, matrix(model, l));
      for (const Layer& l : c.layers) append(theirs_divided, theirs(recorded, l, key(s, "preconditioned.")));
      const Values expected = divided_again(optimizer.curvature(), c, recorded, s);
      REQUIRE(after.size() == expected.size());
      REQUIRE(after.size() == theirs_divided.size());
      double largest = 0, apart = 0, of_theirs = 0;
      for (std::size_t i = 0; i < after.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        apart = support::larger(apart, (before[i] - after[i]) / c.lr - expected[i]);
        of_theirs = support::larger(of_theirs, theirs_divided[i] - expected[i]);
      }
      INFO("step " << s << ", largest " << largest);
      CHECK(apart <= tolerance * largest);
      CHECK(of_theirs <= 2e-6 * largest);                         // float32
      if (s + 1 < steps) set_weights(model, c, recorded, s + 1);  // each step is compared by itself
      factors(step.curvature(), c, recorded, s, of_factors);
    }
  }

 private:
  static void append(Values& to, const Values& from) { to.insert(to.end(), from.begin(), from.end()); }
  /// Their weights and biases as our matrix, the bias as its last row.
  static Values theirs(const Recorded& recorded, const Layer& l, const std::string& prefix) {
    const Values w = recorded.get(prefix + std::to_string(l.number) + ".weight");
    const std::size_t inputs = l.order.size(), outputs = static_cast<std::size_t>(l.outputs);
    Values result;
    for (std::size_t i = 0; i < inputs; ++i)
      for (std::size_t o = 0; o < outputs; ++o) result.push_back(w[o * inputs + static_cast<std::size_t>(l.order[i])]);
    if (l.bias) append(result, recorded.get(prefix + std::to_string(l.number) + ".bias"));
    return result;
  }
  static const sk::plan::Entry& weight(const Layer& l) {
    for (const sk::plan::Entry& e : Model::program.parameters())
      if (std::string_view(Model::program.name(e)) == std::to_string(l.number) + ".weight") return e;
    throw sk::ArgumentError("no such layer");
  }
  static Values matrix(const Model& model, const Layer& l) {
    Values result;
    for (std::size_t i = 0; i < l.order.size() + l.bias; ++i)
      for (long o = 0; o < l.outputs; ++o)
        result.push_back(
            static_cast<double>(model.parameters().data[weight(l).offset + static_cast<long>(i) * sk::row_pitch(l.outputs) + o]));
    return result;
  }
  static void set_weights(Model& model, const Case& c, const Recorded& recorded, int step) {
    const auto lease = model.modify();
    for (const Layer& l : c.layers) {
      const Values w = theirs(recorded, l, key(step, "weight."));
      for (std::size_t i = 0; i < w.size(); ++i) {
        const long row = static_cast<long>(i) / l.outputs, column = static_cast<long>(i) % l.outputs;
        lease.data()[weight(l).offset + row * sk::row_pitch(l.outputs) + column] = static_cast<Scalar>(w[i]);
      }
    }
  }
  /// Their factors in our order.
  static Values factor_g(const Recorded& recorded, const Layer& l, int step) {
    return recorded.get(key(step, "factor_g." + std::to_string(l.number)));
  }
  static Values factor_a(const Recorded& recorded, const Layer& l, int step) {
    std::vector<long> order = l.order;
    if (l.bias) order.push_back(static_cast<long>(order.size()));
    const Values a = recorded.get(key(step, "factor_a." + std::to_string(l.number)));
    Values result;
    for (const long i : order)
      for (const long j : order) result.push_back(a[static_cast<std::size_t>(i) * order.size() + static_cast<std::size_t>(j)]);
    return result;
  }
  /// A step's recorded gradients, divided by the factors as they were recorded at the last renewal of the inverses.
  static Values divided_again(const optim::Kfac& kfac, const Case& c, const Recorded& recorded, int step) {
    const bool eigen = kfac.inverse == optim::KfacInverse::eigen;
    const test::NaiveDamping damping{eigen ? 0 : kfac.damping, eigen ? 0 : kfac.damping, eigen ? kfac.damping : 0};
    const int renewed = step / kfac.inverse_every * kfac.inverse_every;
    Values result;
    double product = 0;
    for (const Layer& l : c.layers) {
      const Values gradient = theirs(recorded, l, key(step, "gradient."));
      const Values d = test::divide_naively(damping, factor_a(recorded, l, renewed), factor_g(recorded, l, renewed), gradient);
      for (std::size_t i = 0; i < d.size(); ++i) product += d[i] * gradient[i];
      append(result, d);
    }
    const double clip = std::abs(product) * c.lr * c.lr;
    if (kfac.kl_clip > 0)
      for (double& v : result) v *= std::min(1.0, std::sqrt(kfac.kl_clip / clip));
    return result;
  }
  template <class State>
  static void factors(const State& state, const Case& c, const Recorded& recorded, int step, double tolerance) {
    for (std::size_t k = 0; k < c.layers.size(); ++k) {
      const Layer& l = c.layers[k];
      const Values a = factor_a(recorded, l, step), g = factor_g(recorded, l, step);
      double apart = 0;
      for (std::size_t i = 0; i < a.size(); ++i) apart = support::larger(apart, static_cast<double>(state.factor_a(k)[i]) - a[i]);
      for (std::size_t i = 0; i < g.size(); ++i) apart = support::larger(apart, static_cast<double>(state.factor_g(k)[i]) - g[i]);
      CHECK(apart <= tolerance);
    }
  }
};

template <class T> auto with(const T& kfac) { return optim::chain(kfac, optim::Sgd{.lr = 0.05f}); }
const optim::Kfac damped{.damping = 0.01, .inverse_every = 1, .kl_clip = 0}, intervals{.factor_every = 2, .inverse_every = 4},
    each_step{.inverse_every = 1};
}  // namespace

TEST_CASE("Kfac follows the fixture's run, in double and in float", "[optim]") {
  const Fixture recorded;
  for (int threads : {1, 3}) Run<MlpModel<double>>::follow(mlp, recorded, with(intervals), 2, threads, 1e-10, 1e-10);
  Run<MlpModel<float>>::follow(mlp, recorded, with(intervals), 2, 2, 1e-4, 1e-4);
}

TEST_CASE("Kfac agrees with recorded runs of kfac-pytorch", "[optim]") {
  const char* folder = std::getenv("SKEIN_DATA");
  const std::string at = folder ? std::string(folder) + "/kfac/" : "";
  if (!folder || !std::filesystem::exists(at + "cnn_eigen.npz")) {
    WARN("SKIPPED: the recorded runs are not there; SKEIN_DATA names the folder that has kfac/cnn_eigen.npz");
    return;
  }
  optim::Kfac inverse = damped;
  inverse.inverse = optim::KfacInverse::cholesky;
  const auto follow = [&]<class Scalar>(Scalar, double tolerance) {
    for (int threads : {1, 3}) {
      Run<MlpModel<Scalar>>::follow(mlp, File(at + "mlp_eigen.npz"), with(damped), 6, threads, tolerance,
                                    std::is_same_v<Scalar, double> ? 1e-10 : 1e-4);
      Run<MlpModel<Scalar>>::follow(mlp, File(at + "mlp_inverse.npz"), with(inverse), 6, threads, tolerance,
                                    std::is_same_v<Scalar, double> ? 1e-10 : 1e-4);
      Run<MlpModel<Scalar>>::follow(mlp, File(at + "mlp_clip_intervals.npz"), with(intervals), 6, threads, tolerance,
                                    std::is_same_v<Scalar, double> ? 1e-10 : 1e-4);
      Run<CnnModel<Scalar>>::follow(cnn, File(at + "cnn_eigen.npz"), with(each_step), 6, threads, tolerance,
                                    std::is_same_v<Scalar, double> ? 1e-10 : 1e-4);
    }
  };
  follow(double{}, 1e-10);
  follow(float{}, 1e-4);
}

namespace {
using Pooled = nn::Sequential<nn::Conv2d<5, sk::Kernel<3>, sk::Padding<1>>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten,
                              nn::Linear<6>, nn::Relu, nn::Linear<3>>;
template <class Network> using Images = sk::Model<Network, sk::Shape<6, 6, 2>, sk::Cpu, double>;

const auto& images() {
  static const auto data = support::small_images();
  return data;
}
Values parameters(const auto& model) { return {model.parameters().begin(), model.parameters().end()}; }
auto with_momentum(optim::KfacInverse how) {
  return optim::chain(optim::ClipNorm{1.0f}, optim::Kfac{.factor_every = 2, .inverse_every = 3, .inverse = how},
                      optim::Sgd{.lr = 0.1f, .momentum = 0.9});
}
const auto momentum = with_momentum(optim::KfacInverse::eigen);
template <class Trainer>
void fit(Trainer& trainer, int epochs, sk::Execution execution = sk::Execution::automatic, int threads = 2) {
  trainer.fit(images(), {.epochs = epochs,
                         .batch = 10,
                         .seed = sk::Seed{5},
                         .progress = false,
                         .threads = threads,
                         .compute = {.execution = execution}});
}
Values trained(sk::Execution execution, int threads, optim::KfacInverse how = optim::KfacInverse::eigen) {
  Images<Pooled> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, with_momentum(how)};
  fit(trainer, 3, execution, threads);
  return parameters(std::as_const(model));
}
/// The parameters of each of so many ranks, of which every second has two workers.
std::vector<Values> trained_by(int ranks, optim::KfacInverse how) {
  std::vector<Values> of_rank(static_cast<std::size_t>(ranks));
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    Images<Pooled> model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, with_momentum(how), sk::parallel::DataParallel{world}};
    fit(trainer, 3, sk::Execution::automatic, 1 + world.rank() % 2);
    of_rank[static_cast<std::size_t>(world.rank())] = parameters(std::as_const(model));
  });
  return of_rank;
}
}  // namespace

TEST_CASE("Kfac trains alike in either order of the work, on any number of threads, with pooling behind the convolution",
          "[optim]") {
  const Values one = trained(sk::Execution::layer_wise, 1);
  for (const Values& other :
       {trained(sk::Execution::depth_first, 1), trained(sk::Execution::depth_first, 3), trained(sk::Execution::layer_wise, 2)})
    for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(other[i] == Approx(one[i]).margin(1e-9).epsilon(0));
}

TEST_CASE("Kfac of windows of one position is the same along one, two and three dimensions", "[optim]") {
  const auto steps = [&]<class Layer, class Form>(Layer, Form) {
    Images<nn::Sequential<Form, Layer, nn::Tanh, nn::Flatten, nn::Linear<3>>> model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, momentum};
    fit(trainer, 2);
    return parameters(std::as_const(model));
  };
  const Values image = steps(nn::Conv2d<4, sk::Kernel<1>>{}, nn::Reshape<6, 6, 2>{});
  for (const Values& other : {steps(nn::Conv1d<4, sk::Kernel<1>>{}, nn::Reshape<36, 2>{}),
                              steps(nn::Conv3d<4, sk::Kernel<1>>{}, nn::Reshape<2, 3, 6, 2>{})}) {
    REQUIRE(other.size() == image.size());
    for (std::size_t i = 0; i < image.size(); ++i) REQUIRE(other[i] == Approx(image[i]).margin(1e-9).epsilon(0));
  }
}

namespace {
/// Two epochs of three steps with Kfac, of 12 sequences of 3 positions as samples of shape In; begins with `weights`, if any.
template <class Network, class In> Values trained_on_positions(Values weights, int threads) {
  constexpr long positions = 36, sample = In::count, c = In::extents.last(), rows = positions * c / sample;
  Values x(positions * c), y(positions * 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7 * static_cast<double>(i) + 0.3);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(1.9 * static_cast<double>(i) + 0.1);
  const auto data = sk::data::from_tensors(x, In::extents, y);
  sk::Model<Network, In, sk::Cpu, double> model{sk::Seed{3}};
  if (!weights.empty()) {
    const auto lease = model.modify();
    std::copy(weights.begin(), weights.end(), lease.data());
  } else {
    return parameters(std::as_const(model));
  }
  sk::Trainer trainer{model, nn::Mse{}, with_momentum(optim::KfacInverse::cholesky)};
  trainer.fit(data, {.epochs = 2, .batch = rows / 3, .progress = false, .threads = threads, .loader = {.shuffle = false}});
  return parameters(std::as_const(model));
}
template <class In, int N> void check_positions() {
  using nn::EachPosition, nn::Linear, nn::Tanh;
  using Rows = nn::Sequential<Linear<N>, Tanh, Linear<2>>;
  using Steps = nn::Sequential<EachPosition<Linear<N>>, Tanh, EachPosition<Linear<2>>>;
  using Sequences = sk::Shape<3, In::extents.last()>;
  const Values first = trained_on_positions<Rows, In>({}, 1), one = trained_on_positions<Rows, In>(first, 1);
  REQUIRE(one != first);
  for (const int threads : {1, 3}) {
    const Values other = trained_on_positions<Steps, Sequences>(first, threads);
    REQUIRE(other.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(other[i] == Approx(one[i]).margin(1e-9).epsilon(0));
  }
}
}  // namespace

TEST_CASE("Kfac of a Linear at each position is that of as many samples", "[optim]") {
  check_positions<sk::Shape<4>, 5>();
  check_positions<sk::Shape<16>, 16>();  // where nothing is copied
}

TEST_CASE("Kfac over ranks: the weights of one rank, and all ranks have the same bits", "[optim]") {
  const auto how = GENERATE(optim::KfacInverse::eigen, optim::KfacInverse::cholesky);
  const int ranks = GENERATE(2, 3, 7);
  const Values one = trained(sk::Execution::automatic, 1, how);
  const std::vector<Values> all = trained_by(ranks, how);
  for (const Values& v : all) CHECK(v == all[0]);
  double apart = 0;
  for (std::size_t i = 0; i < one.size(); ++i) apart = support::larger(apart, all[0][i] - one[i]);
  CHECK(apart <= 1e-9);
}

TEST_CASE("Kfac of ranks that own parts: the weights of one rank", "[optim]") {
  const Values one = trained(sk::Execution::automatic, 1);
  const auto check = [&](auto sharded, int ranks) {
    std::vector<Values> all(static_cast<std::size_t>(ranks));
    sk::spawn(ranks, [&](sk::ThreadComm& world) {
      Images<Pooled> model{sk::Seed{3}};
      sk::Trainer trainer{model, nn::CrossEntropy{}, momentum, sk::parallel::DataParallel{world, sharded}};
      fit(trainer, 3, sk::Execution::automatic, 1 + world.rank() % 2);
      all[static_cast<std::size_t>(world.rank())] = parameters(std::as_const(model));
    });
    for (const Values& v : all) REQUIRE(v == all[0]);
    for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(all[0][i] == Approx(one[i]).margin(1e-9).epsilon(0));
  };
  for (const int ranks : {2, 3}) {
    check(sk::parallel::Sharded<1>{}, ranks);
    check(sk::parallel::Sharded<2>{}, ranks);
  }
}

namespace {
sk::FitOptions in_order(int epochs, int ranks) {
  return {.epochs = epochs,
          .batch = 10 * ranks,
          .seed = sk::Seed{5},
          .progress = false,
          .loader = {.shuffle = false, .partition = sk::data::Partition::local}};
}
/// Without momentum, of which each rank has its own while ranks drift apart, and a file rank 0's.
const auto plain_steps = optim::chain(optim::Kfac{.factor_every = 2, .inverse_every = 3}, optim::Sgd{.lr = 0.1f});
/// What each rank has after so many epochs under policy(world), on the data of its own that data(rank) is. It begins with the
/// file `load`, and saves itself half way.
template <class Policy, class Data> std::vector<Values> apart(int ranks, const Policy& policy, const Data& data, int epochs,
                                                              const std::string& load = {}, const std::string& save = {}) {
  std::vector<Values> all(static_cast<std::size_t>(ranks));
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    Images<Pooled> model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, plain_steps, policy(world)};
    const auto set = data(world.rank());
    int epochs_left = epochs;
    if (!load.empty()) trainer.load(load);
    if (!save.empty()) {
      trainer.fit(set, in_order(epochs / 2, ranks));
      trainer.save(save);
      epochs_left = epochs - epochs / 2;
    }
    trainer.fit(set, in_order(epochs_left, ranks));
    Values& mine = all[static_cast<std::size_t>(world.rank())];
    mine = parameters(std::as_const(model));
    for (std::size_t layer = 0; layer < 3; ++layer) {
      const auto a = trainer.train_step().curvature().factor_a(layer), g = trainer.train_step().curvature().factor_g(layer);
      mine.insert(mine.end(), a.begin(), a.end());
      mine.insert(mine.end(), g.begin(), g.end());
    }
  });
  return all;
}
template <class Check> void with_each_policy(const Check& check) {
  namespace parallel = sk::parallel;
  check([](sk::ThreadComm& world) { return parallel::DataParallel{world, parallel::SyncEvery<3>{}}; });
  check([](sk::ThreadComm& world) { return parallel::ModelAverage{world, parallel::Period<5>{}}; });
  check([](sk::ThreadComm& world) { return parallel::Gossip{world}; });
  check([](sk::ThreadComm& world) {
    return parallel::Compose{parallel::DataParallel{world, parallel::SyncEvery<2>{}},
                             parallel::ModelAverage{world, parallel::Period<4>{}}};
  });
}
}  // namespace

TEST_CASE("Kfac of ranks that drift apart: with the same samples each makes the steps of one rank", "[optim]") {
  Values one;
  {
    Images<Pooled> model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, plain_steps};
    trainer.fit(images(), in_order(3, 1));
    one = parameters(std::as_const(model));
  }
  with_each_policy([&](const auto& policy) {
    for (const Values& v : apart(
             3, policy, [](int) { return images(); }, 3))
      for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(v[i] == Approx(one[i]).margin(1e-9).epsilon(0));
  });
}

TEST_CASE("Kfac of ranks that drift apart: they have the same factors, and go on from a file with the same bits", "[optim]") {
  const support::TemporaryFolder folder;
  const auto check = [&](const auto& policy) {
    const std::string file = folder / "training";
    const std::vector<Values> whole = apart(2, policy, support::small_images, 4, "", file);
    const std::vector<Values> resumed = apart(2, policy, support::small_images, 4, file);
    CHECK(whole[0] == whole[1]);
    CHECK(resumed == whole);
  };
  with_each_policy(check);
  check([](sk::ThreadComm& world) {
    return sk::parallel::ModelAverage{world, sk::parallel::ModelAverageOptions{.delay = 1}, sk::parallel::Period<2>{}};
  });
}

TEST_CASE("Kfac over ranks sends the lower triangles of the factors, and each inverse once", "[optim]") {
  using Plan = optim::KfacState<double>;
  const sk::plan::RankInGrid first{0, {2, 2}}, second{1, {2, 2}};
  const auto layers = Images<Pooled>::program.layers();  // factors of 19 and 5, 46 and 6, 7 and 3 rows
  const auto triangle = [](long n) { return n * (n + 1) / 2; };
  const auto of_both = [&](const optim::Kfac& kfac) {
    return Plan(layers, kfac, first).inverse_values() + Plan(layers, kfac, second).inverse_values();
  };
  CHECK(Plan(layers).packed_values() == triangle(19) + triangle(5) + triangle(46) + triangle(6) + triangle(7) + triangle(3) + 1);
  CHECK(of_both({}) == 19 * 20 + 5 * 6 + 46 * 47 + 6 * 7 + 7 * 8 + 3 * 4);
  CHECK(of_both({.inverse = optim::KfacInverse::cholesky}) == 19 * 19 + 25 + 46 * 46 + 36 + 49 + 9);
  CHECK(Plan(layers).inverse_values() == 0);  // of one rank
  struct Counted {
    long *summed, *sent;
    void sum(std::span<double> values) const { *summed += static_cast<long>(values.size()); }
    void gather_workers(std::span<double> own, std::span<const std::size_t>, std::span<double>) const {
      *sent += static_cast<long>(own.size());
    }
    static void gather_receivers(std::span<double>, std::span<const std::size_t>, std::span<double>) {}
  };
  for (const int every : {1, 10}) {
    const optim::Kfac kfac{.factor_every = every, .inverse_every = every};
    Images<Pooled> model{sk::Seed{3}};
    sk::train::StepParts<Images<Pooled>, nn::CrossEntropy, decltype(with(kfac)), sk::parallel::PolicyState>::Executor executor(
        model, nn::CrossEntropy{}, sk::ExecutorOptions{.capacity = 4, .threads = 1});
    Plan state(layers, kfac, first);
    state.attach(executor);
    Values gradient(static_cast<std::size_t>(Images<Pooled>::sizes.stored));
    long summed = 0, sent = 0;
    executor.workers().run([&](const sk::Worker& w) {
      for (int step = 1; step <= 20; ++step) {
        state.begin_pass(kfac, w, step, 4, false);
        state.precondition(kfac, {.step = step, .lr = 0.1, .gradient = gradient.data()}, w, Counted{&summed, &sent});
      }
    });
    CHECK(summed == 20 / every * state.packed_values());
    CHECK(sent == 20 / every * state.inverse_values());
  }
}

TEST_CASE("Kfac over ranks, resumed on another number of them", "[optim]") {
  const support::TemporaryFolder folder;
  const auto go_on = [&](int ranks, int epochs, bool load) {
    Values result;
    sk::spawn(ranks, [&](sk::ThreadComm& world) {
      Images<Pooled> model{sk::Seed{3}};
      sk::Trainer trainer{model, nn::CrossEntropy{}, momentum, sk::parallel::DataParallel{world}};
      if (load) trainer.load(folder / "training");
      fit(trainer, epochs, sk::Execution::automatic, 1);
      if (!load) trainer.save(folder / "training");
      if (world.rank() == 0) result = parameters(std::as_const(model));
    });
    return result;
  };
  (void)go_on(2, 1, false);
  const Values same = go_on(2, 3, true), other = go_on(3, 3, true), whole = trained(sk::Execution::automatic, 1);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    REQUIRE(same[i] == Approx(whole[i]).margin(1e-9).epsilon(0));
    REQUIRE(other[i] == Approx(whole[i]).margin(1e-9).epsilon(0));
  }
}

TEST_CASE("Ranks whose Kfac has other inverses are named, by the words of the setting", "[optim]") {
  const auto act = [] {
    sk::spawn(2, [](sk::ThreadComm& world) {
      Images<Pooled> model{sk::Seed{3}};
      const optim::KfacInverse how = world.rank() == 0 ? optim::KfacInverse::eigen : optim::KfacInverse::cholesky;
      sk::Trainer trainer{model, nn::CrossEntropy{}, with_momentum(how), sk::parallel::DataParallel{world}};
      fit(trainer, 1, sk::Execution::automatic, 1);
    });
  };
  CHECK_THROWS_WITH(act(), Catch::Contains("fit: `.inverse` of Kfac is eigen on rank 0, cholesky on rank 1"));
}

TEST_CASE("A training with Kfac that is resumed has the same bits", "[optim]") {
  const auto check = [](const auto& optimizer) {
    const support::TemporaryFolder folder;
    Images<Pooled> model{sk::Seed{3}}, other{sk::Seed{4}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, optimizer}, resumed{other, nn::CrossEntropy{}, optimizer};
    fit(trainer, 1);
    trainer.save(folder / "training");
    resumed.load(folder / "training");
    fit(trainer, 1);
    fit(resumed, 2);
    CHECK(parameters(std::as_const(model)) == parameters(std::as_const(other)));
  };
  check(momentum);
  check(optim::chain(optim::Kfac{.damping = 0.1, .inverse_every = 2, .factor_bias_correction = true}, optim::Sgd{.lr = 0.1f}));
  check(optim::chain(optim::Kfac{.damping = 0.1, .inverse_every = 3, .inverse = optim::KfacInverse::cholesky, .inverse_rank = 3},
                     optim::Sgd{.lr = 0.1f}));
}

TEST_CASE("Workers that divide pieces of one layer do not write over what others read", "[optim]") {
  using Wide = sk::Model<nn::Sequential<nn::Linear<96>, nn::Tanh, nn::Linear<3>>, sk::Shape<64>, sk::Cpu, double>;
  std::vector<double> x(64 * 64);
  std::vector<int> y(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37 * static_cast<double>(i % 613));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<int>(i % 3);
  const auto data = sk::data::from_tensors(x, sk::Extents{1, {64}}, y);
  const auto trained_by = [&](int threads) {
    Wide model{sk::Seed{1}};
    const auto kfac = optim::Kfac{.damping = 0.03,
                                  .inverse_every = 1,
                                  .kl_clip = 0,
                                  .inverse = optim::KfacInverse::cholesky,
                                  .factor_bias_correction = true};
    sk::Trainer trainer{model, nn::CrossEntropy{}, optim::chain(kfac, optim::Sgd{.lr = 0.01f})};
    trainer.fit(data, {.epochs = 3, .batch = 16, .progress = false, .threads = threads});
    return parameters(std::as_const(model));
  };
  const Values one = trained_by(1), four = trained_by(4);
  for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(four[i] == Approx(one[i]).margin(1e-9).epsilon(0));
}

TEST_CASE("Inverses of another kind are made anew in the step after a load", "[optim]") {
  const support::TemporaryFolder folder;
  const auto with = [](optim::KfacInverse inverse, int every, bool pi = false) {
    return optim::chain(optim::Kfac{.damping = 0.1, .inverse_every = every, .inverse = inverse, .pi_correction = pi},
                        optim::Sgd{.lr = 0.1f});
  };
  constexpr auto eigen = optim::KfacInverse::eigen, cholesky = optim::KfacInverse::cholesky;
  Images<Pooled> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, with(eigen, 1000)};
  fit(trainer, 1);
  trainer.save(folder / "training");
  const int steps = static_cast<int>(trainer.train_step().steps());  // after so many an update is due
  const auto resumed = [&](const auto& optimizer) {
    Images<Pooled> other{sk::Seed{4}};
    sk::Trainer resumes{other, nn::CrossEntropy{}, optimizer};
    resumes.load(folder / "training");
    fit(resumes, 2);
    return parameters(std::as_const(other));
  };
  CHECK(resumed(with(cholesky, 1000)) == resumed(with(cholesky, steps)));
  CHECK(resumed(with(eigen, 1000, true)) == resumed(with(eigen, steps, true)));
  CHECK(resumed(with(eigen, 1000)) != resumed(with(eigen, steps)));
}

TEST_CASE("A file that is loaded and saved before a step still says of which kind its inverses are", "[optim]") {
  const support::TemporaryFolder folder;
  const auto with = [](optim::KfacInverse inverse) {
    return optim::chain(optim::Kfac{.damping = 0.1, .inverse_every = 1000, .inverse = inverse}, optim::Sgd{.lr = 0.1f});
  };
  Images<Pooled> model{sk::Seed{3}}, copied{sk::Seed{4}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, with(optim::KfacInverse::eigen)};
  fit(trainer, 1);
  trainer.save(folder / "training");
  sk::Trainer copies{copied, nn::CrossEntropy{}, with(optim::KfacInverse::cholesky)};
  copies.load(folder / "training");
  copies.save(folder / "copy");
  const auto resumed = [&](const char* file) {
    Images<Pooled> other{sk::Seed{5}};
    sk::Trainer resumes{other, nn::CrossEntropy{}, with(optim::KfacInverse::cholesky)};
    resumes.load(folder / file);
    fit(resumes, 2);
    return parameters(std::as_const(other));
  };
  CHECK(resumed("copy") == resumed("training"));
}

TEST_CASE("A file of a training with other inverses is refused", "[optim]") {
  const support::TemporaryFolder folder;
  const auto with_rank = [](int rank) {
    return optim::chain(optim::Kfac{.inverse = optim::KfacInverse::cholesky, .inverse_rank = rank}, optim::Sgd{});
  };
  Images<Pooled> model{sk::Seed{3}};
  sk::Trainer whole{model, nn::CrossEntropy{}, with_rank(0)}, three{model, nn::CrossEntropy{}, with_rank(3)};
  fit(whole, 1);
  whole.save(folder / "training");
  CHECK_THROWS_WITH(three.load(folder / "training"),
                    Catch::Contains("it is of another .inverse_rank or .unit_wise, or damaged: go on with those; "
                                    "load_weights(path) takes the weights alone"));
}

TEST_CASE("Kfac refuses what makes no sense", "[optim]") {
  CHECK_THROWS_WITH((optim::Kfac{.damping = 0}.check()), Catch::Contains("Kfac{.damping = 0}: the damping must be positive"));
  CHECK_THROWS_WITH((optim::Kfac{.damping = INFINITY}.check()), Catch::Contains("Kfac{.damping = inf}: it must be finite"));
  CHECK_THROWS_WITH((optim::Kfac{.inverse_every = 0}.check()), Catch::Contains("an interval is at least one step"));
  CHECK_THROWS_WITH((optim::Kfac{.inverse = static_cast<optim::KfacInverse>(9)}.check()),
                    Catch::Contains("give eigen or cholesky"));
  CHECK_THROWS_WITH((optim::Kfac{.inverse_rank = 8}.check()), Catch::Contains("goes with .inverse = KfacInverse::cholesky"));
  CHECK_THROWS_WITH((optim::Kfac{.inverse = optim::KfacInverse::cholesky, .inverse_rank = -1}.check()),
                    Catch::Contains("0 is whole inverses"));
}
