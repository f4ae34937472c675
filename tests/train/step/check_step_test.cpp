// SPDX-License-Identifier: Apache-2.0
// Which chain goes with which policy: the refusals of the table in docs/guide/optim.md. That what is taken trains as one rank
// does is in tests/parallel/transforms_test.cpp and transform_test.cpp; the sentences are in tests/compile_fail.
#include <skein/train/step/check_step.hpp>

#include <catch2/catch.hpp>

#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/clip_value.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/optim/transform/tensor_update.hpp>
#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/reproducible.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/parallel/server/parameter_server.hpp>

namespace sk = skein;
namespace optim = skein::optim;
namespace parallel = skein::parallel;

namespace {
using Fault = sk::train::StepFault;
using Comm = sk::ThreadComm;
using Model = sk::Model<sk::nn::Linear<3>, sk::Shape<2>>;
using CoupledModel = sk::Model<sk::nn::Sequential<sk::nn::Linear<3>, sk::nn::BatchNorm<>>, sk::Shape<2>>;
using optim::Chain, optim::Sgd;
using Element = Chain<Sgd, optim::ClipValue>;
using NormFirst = Chain<Sgd, optim::ClipNorm, optim::ClipValue>;
using NormLater = Chain<Sgd, optim::ClipValue, optim::ClipNorm>;
using Tensor = Chain<Sgd, optim::Lars>;

template <class Policy, class M = Model> using StateOf =
    decltype(std::declval<const Policy&>().bind(std::declval<const parallel::Replica<float, typename M::device>&>()));
template <class Optimizer, class Policy, class M = Model>
inline constexpr Fault fault = sk::train::step_fault<M, Optimizer, StateOf<Policy, M>>();

template <class Policy> inline constexpr bool takes_all =
    fault<Sgd, Policy> == Fault::none&& fault<Element, Policy> == Fault::none&& fault<NormFirst, Policy> ==
    Fault::none&& fault<NormLater, Policy> == Fault::none&& fault<Tensor, Policy> == Fault::none;
template <class... Options> using DataParallel = parallel::DataParallel<Comm, Options...>;
}  // namespace

static_assert(takes_all<parallel::SingleProcess> && takes_all<DataParallel<>> && takes_all<DataParallel<parallel::SyncEvery<4>>>);
static_assert(takes_all<DataParallel<parallel::Reproducible<4>>>);
static_assert(takes_all<DataParallel<parallel::Sharded<1>>> && takes_all<DataParallel<parallel::Sharded<2>>>);
static_assert(takes_all<parallel::ModelAverage<4, Comm>> && takes_all<parallel::Gossip<Comm>>);
static_assert(takes_all<parallel::ParameterServer<Comm, parallel::Staleness<0>>>);
static_assert(takes_all<parallel::Compose<DataParallel<>, parallel::ModelAverage<4, Comm>>>);

namespace {
using Late = parallel::ParameterServer<Comm, parallel::Staleness<2>>;
}
static_assert(fault<Element, Late> == Fault::none && fault<Tensor, Late> == Fault::none);
static_assert(fault<NormFirst, Late> == Fault::norms_of_servers && fault<NormLater, Late> == Fault::norms_of_servers);
static_assert(fault<NormFirst, parallel::ParameterServer<Comm>> == Fault::norms_of_servers);

static_assert(fault<Sgd, DataParallel<parallel::Reproducible<4>>, CoupledModel> == Fault::shards_of_couples);
static_assert(fault<Sgd, DataParallel<parallel::Sharded<1>>, CoupledModel> == Fault::none);

namespace {
struct HostTensor {
  static constexpr auto needs = optim::Needs::tensor;
  template <class S> void tensor(const optim::TensorUpdate<S>&) const {}
};
/// What is asked of a model: where it is.
struct GpuModel {
  using device = sk::Cuda;
  static constexpr const auto& sizes = Model::sizes;
};
template <class Optimizer, class PolicyState = parallel::PolicyState>
inline constexpr Fault on_gpu = sk::train::step_fault<GpuModel, Optimizer, PolicyState>();
}  // namespace
static_assert(on_gpu<Sgd> == Fault::none && on_gpu<Element> == Fault::none && on_gpu<NormFirst> == Fault::none);
static_assert(on_gpu<NormLater> == Fault::none && on_gpu<Tensor> == Fault::none);
static_assert(on_gpu<Chain<Sgd, HostTensor>> == Fault::tensors_on_device &&
              fault<Chain<Sgd, HostTensor>, DataParallel<>> == Fault::none);
static_assert(on_gpu<Sgd, StateOf<DataParallel<parallel::Reproducible<4>>>> == Fault::shards_on_device);
static_assert(on_gpu<Sgd, StateOf<Late>> == Fault::servers_on_device);

TEST_CASE("Every refusal is known when the program is compiled", "[train]") { SUCCEED("static_asserts above"); }
