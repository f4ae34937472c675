// SPDX-License-Identifier: Apache-2.0
// Which chain goes with which policy: the refusals of the table in docs/guide/optim.md. That what is taken trains as one rank
// does is in tests/parallel/transforms_test.cpp and transform_test.cpp; the sentences are in tests/compile_fail.
#include <skein/train/step/check_step.hpp>

#include <array>
#include <fstream>
#include <sstream>
#include <string>

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

/// A row of the guide's table: which of four kinds of chain are taken.
using Row = std::array<bool, 4>;
template <class State, class M = Model> constexpr Row row_of_state = {
    sk::train::step_fault<M, Element, State>() == Fault::none, sk::train::step_fault<M, NormFirst, State>() == Fault::none,
    sk::train::step_fault<M, NormLater, State>() == Fault::none, sk::train::step_fault<M, Tensor, State>() == Fault::none};
template <class Policy> constexpr Row row = row_of_state<StateOf<Policy>>;
template <class... Policies> constexpr bool all_rows(const Row& expected) { return ((row<Policies> == expected) && ...); }
constexpr Row everything{true, true, true, true};
template <class... Options> using DataParallel = parallel::DataParallel<Comm, Options...>;
}  // namespace

static_assert(
    all_rows<parallel::SingleProcess, DataParallel<>, DataParallel<parallel::SyncEvery<4>>,
             DataParallel<parallel::Reproducible<4>>, parallel::ModelAverage<Comm, parallel::Period<4>>, parallel::Gossip<Comm>,
             parallel::Compose<DataParallel<>, parallel::ModelAverage<Comm, parallel::Period<4>>>>(everything));
static_assert(all_rows<DataParallel<parallel::Sharded<1>>, DataParallel<parallel::Sharded<2>>>(everything));
static_assert(all_rows<parallel::ParameterServer<Comm, parallel::Staleness<0>>>(everything));

namespace {
using Late = parallel::ParameterServer<Comm, parallel::Staleness<2>>;
}
static_assert(all_rows<Late, parallel::ParameterServer<Comm>>({true, false, false, true}));
static_assert(fault<NormFirst, Late> == Fault::norms_of_servers && fault<NormLater, Late> == Fault::norms_of_servers);

static_assert(fault<Sgd, DataParallel<parallel::Reproducible<4>>, CoupledModel> == Fault::shards_couple_samples);
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
static_assert(row_of_state<parallel::PolicyState, GpuModel> == everything);
static_assert(on_gpu<Chain<Sgd, HostTensor>> == Fault::tensors_on_device &&
              fault<Chain<Sgd, HostTensor>, DataParallel<>> == Fault::none);
static_assert(on_gpu<Sgd, StateOf<DataParallel<parallel::Reproducible<4>>>> == Fault::shards_on_device);
static_assert(on_gpu<Sgd, StateOf<Late>> == Fault::servers_on_device);

TEST_CASE("The guide's table says the same", "[train]") {
  std::ifstream page(SKEIN_SOURCE_DIR "/docs/guide/optim.md");
  const auto says = [&](const std::string& name) {  // the cells of a row
    Row cells{};
    page.clear();
    page.seekg(0);
    for (std::string line; std::getline(page, line);) {
      if (!line.starts_with("| " + name)) continue;
      std::istringstream text(line);
      std::string cell;
      for (int i = 0; std::getline(text, cell, '|') && i < 6; ++i) {
        if (i >= 2) cells[static_cast<std::size_t>(i - 2)] = cell.starts_with(" yes");
        if (i >= 2) CHECK((cell.starts_with(" yes") || cell.starts_with(" refused")));
      }
      return cells;
    }
    FAIL("no row " << name);
    return cells;
  };
  CHECK(says("one rank, `DataParallel`") == everything);
  CHECK(says("`Sharded<1>`, `Sharded<2>`") == everything);
  CHECK(says("`ParameterServer` with `Staleness<0>`") == row<parallel::ParameterServer<Comm, parallel::Staleness<0>>>);
  CHECK(says("`ParameterServer` with another bound") == row<Late>);
  CHECK(says("a model on a GPU") == row_of_state<parallel::PolicyState, GpuModel>);
}
