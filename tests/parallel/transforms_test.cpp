// SPDX-License-Identifier: Apache-2.0
// Gradient transforms under each policy: the table of docs/guide/optim.md. tests/train/step/transform_test.cpp has
// DataParallel, Reproducible and Sharded; what is refused is in tests/compile_fail/optim_chain_*.cpp.
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
#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/parallel/server/parameter_server.hpp>

#include "../support/shard_cases.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;
namespace parallel = skein::parallel;

namespace {
using Body = nn::Sequential<nn::Flatten, nn::Linear<11>, nn::Relu>;
using Pipeline = parallel::Pipeline<Body, nn::Linear<3>>;
using Net = Pipeline::network;
using Values = std::vector<double>;

/// Weight decay as a transform: an element that sees its value, and the rates of its group.
struct Decay {
  static constexpr auto needs = optim::Needs::element;
  template <class S> constexpr S element(const optim::UpdateRates<S>& at, S gradient, S value, S*) const {
    return gradient + at.weight_decay * value;
  }
};

const optim::Sgd sgd{.lr = 0.3f, .momentum = 0.9};
const auto element =
    optim::chain(optim::ClipValue{0.01f}, Decay{},
                 optim::Adam{.lr = 0.01f, .weight_decay = 0.01f, .groups = optim::no_decay_on_biases_and_norms()});
const auto head = optim::chain(optim::ClipNorm{0.05f}, optim::ClipValue{0.01f}, sgd);
const auto tensor = optim::chain(optim::ClipNorm{0.2f}, optim::Muon{}, optim::Lamb{}, optim::ClipNorm{0.01f}, sgd);

template <class Policy, class Optimizer> Values train(const Policy& policy, const Optimizer& optimizer, sk::FitOptions options) {
  options.epochs = 2;
  options.threads = 1;
  return shard_cases::train<Net, double>(policy, options, optimizer).parameters;
}
template <class Optimizer> Values serial(const Optimizer& optimizer) {
  return train(parallel::SingleProcess{}, optimizer, {.batch = 19});
}
void require_close(const Values& a, const Values& b) {
  RANK_CHECK(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) RANK_CHECK(a[i] == Approx(b[i]).margin(1e-9).epsilon(0));
}
}  // namespace

TEST_CASE("The chains of this table differ", "[parallel]") {
  CHECK(serial(element) != serial(element.optimizer()));
  CHECK(serial(head) != serial(element));
  CHECK(serial(tensor) != serial(sgd));
}

TEST_CASE("SyncEvery, ModelAverage and Gossip take any chain: a rank's own step is a whole one", "[parallel]") {
  const auto takes = [](const auto& chain) {
    const Values expected = serial(chain);
    sk::spawn(2, [&](sk::ThreadComm& world) {
      require_close(train(parallel::DataParallel{world, parallel::SyncEvery<1>{}}, chain, {.batch = 19}), expected);
      // Every rank has all of the data, so that all make the same steps, and their mean is the serial training.
      const sk::FitOptions alike{.loader = {.batch_per_rank = 19, .shuffle = false, .partition = sk::data::Partition::local}};
      const Values alone = train(parallel::SingleProcess{}, chain, {.batch = 19, .loader = {.shuffle = false}});
      require_close(train(parallel::ModelAverage{world, parallel::Period<1>{}}, chain, alike), alone);
      require_close(train(parallel::Gossip{world}, chain, alike), alone);
    });
  };
  takes(element);
  takes(tensor);
}

TEST_CASE("Servers of whole steps take any chain: their parts end at parameters, their norms are summed", "[parallel]") {
  const auto takes = [](const auto& chain) {
    const Values expected = serial(chain);
    for (const int servers : {1, 2, 3})
      sk::spawn(2 + servers, [&](sk::ThreadComm& world) {
        const auto policy = parallel::ParameterServer{world, {.servers = servers}, parallel::Staleness<0>{}};
        require_close(train(policy, chain, {.batch = 19}), expected);
      });
  };
  takes(element);
  takes(head);
  takes(tensor);
  const Values clipped = train(parallel::SingleProcess{}, sgd, {.batch = 19, .clip_norm = 0.05});
  sk::spawn(4, [&](sk::ThreadComm& world) {
    const auto policy = parallel::ParameterServer{world, {.servers = 2}, parallel::Staleness<0>{}};
    require_close(train(policy, sgd, {.batch = 19, .clip_norm = 0.05}), clipped);
  });
}

TEST_CASE("Servers that do not wait take elements and tensors, of each rank's own gradients", "[parallel]") {
  const auto takes = [](const auto& chain) {
    const Values expected = serial(chain);
    sk::spawn(3, [&](sk::ThreadComm& world) {  // one rank trains: its gradients are never late
      require_close(train(parallel::ParameterServer{world, {.servers = 2}}, chain, {.batch = 19}), expected);
    });
  };
  takes(element);
  takes(optim::chain(optim::Lars{.trust = 0.05f}, optim::ClipValue{0.01f}, Decay{}, sgd));
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const auto policy = parallel::ParameterServer{world};
    RANK_CHECK(support::thrown<sk::ArgumentError>([&] {
                 train(policy, sgd, {.batch = 19, .clip_norm = 1});
               }).find("which a parameter server waits for with Staleness<0>") != std::string::npos);
  });
}

TEST_CASE("An outer optimizer takes elementwise transforms", "[parallel]") {
  sk::spawn(3, [&](sk::ThreadComm& world) {
    const auto outer = [&](const auto& optimizer) {
      return train(parallel::ModelAverage{world, parallel::Period<2>{}, parallel::DiLoCo{optimizer}}, optim::Sgd{.lr = 0.1f},
                   {.batch = 18});
    };
    const optim::Sgd plain{.lr = 0.7f, .momentum = 0.9, .nesterov = true};
    const Values nesterov = outer(plain);
    require_close(outer(optim::chain(optim::ClipValue{1e6f}, plain)), nesterov);
    RANK_CHECK(outer(optim::chain(optim::ClipValue{1e-4f}, plain)) != nesterov);
  });
}

TEST_CASE("A pipeline takes any chain: a norm is over its stages, a tensor is whole on one of them", "[parallel]") {
  const auto takes = [](const auto& chain) {
    const Values expected = serial(chain);
    sk::spawn(2, [&](sk::ThreadComm& world) {
      const shard_cases::Images images;
      const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
      const Pipeline pipeline{world, {.micro_batches = 4}};
      auto model = pipeline.model<sk::Shape<6, 6, 1>, sk::Cpu, double>(sk::Seed{3});
      sk::Trainer trainer{model, nn::CrossEntropy{}, chain, pipeline};
      trainer.fit(data, {.epochs = 2, .batch = 19, .seed = sk::Seed{11}, .progress = false, .threads = 1});
      using Model = decltype(model);
      for (int s = 0; s < 2; ++s)
        if (const auto own = model.parameters(s); own.size > 0)
          require_close(Values(own.begin(), own.end()),
                        Values(expected.begin() + Model::range(s).begin, expected.begin() + Model::range(s).end));
    });
  };
  takes(element);
  takes(head);
  takes(tensor);
}
