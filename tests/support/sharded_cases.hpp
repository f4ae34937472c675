// SPDX-License-Identifier: Apache-2.0
// What Sharded must do on any communicator of the host.
#pragma once
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/parallel/data/sharded.hpp>

#include "shard_cases.hpp"
#include "temporary_folder.hpp"

namespace sharded_cases {

namespace sk = skein;
namespace nn = skein::nn;
using sk::parallel::DataParallel, sk::parallel::Sharded;
using Net = nn::Sequential<nn::Flatten, nn::Linear<37>, nn::Relu, nn::Linear<20>, nn::Relu, nn::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<6, 6, 1>>;
inline constexpr sk::optim::Adam adam{.lr = 0.01f};

template <class Policy> auto train(const Policy& policy, double clip = 0) {
  return shard_cases::train<Net>(policy, {.epochs = 2, .batch = 19, .clip_norm = clip, .threads = 1 + policy.comm().rank() % 2},
                                 adam);
}

/// The weights of DataParallel, as bits: sums are in the order of the ranks either way. Clipped, but for the rounding of the
/// norm, in float.
template <class Comm> void agrees_with_data_parallel(Comm& world) {
  const auto whole = train(sk::parallel::DataParallel{world}), clipped = train(sk::parallel::DataParallel{world}, 0.05);
  RANK_CHECK(clipped.parameters != whole.parameters);
  for (long bucket : {1L, 1L << 20}) {
    RANK_CHECK(train(DataParallel{world, {.bucket_bytes = bucket}, Sharded<1>{}}) == whole);
    RANK_CHECK(train(DataParallel{world, {.bucket_bytes = bucket}, Sharded<2>{}}) == whole);
  }
  shard_cases::require_close(train(DataParallel{world, Sharded<1>{}}, 0.05), clipped, 1e-5);
  shard_cases::require_close(train(DataParallel{world, {.poll = false}, Sharded<2>{}}, 0.05), clipped, 1e-5);
}

template <class Policy> struct Training {
  using Trainer = sk::Trainer<Model, nn::CrossEntropy, sk::optim::Adam, Policy>;
  explicit Training(const Policy& policy) : trainer(model, {}, adam, policy) {}
  void epoch(int epochs = 1) {  // after load() all that there are to be
    const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
    trainer.fit(data, {.epochs = epochs, .batch = 19, .seed = sk::Seed{2}, .progress = false, .threads = 1});
  }
  shard_cases::Images images;
  Model model{sk::Seed{3}};
  Trainer trainer;
};

/// The bytes of the optimizer's state: of all ranks together those of one whole, of each its part.
template <class Comm> void state_is_a_part(Comm& world) {
  Training part(DataParallel{world, Sharded<1>{}});
  auto& optimizer = part.trainer.train_step().optimizer();
  const std::size_t whole = 2 * Model::sizes.stored * sizeof(float), line = 2 * 16 * sizeof(float),
                    ranks = static_cast<std::size_t>(world.size());
  RANK_CHECK(optimizer.state_bytes() <= whole / ranks + line);
  RANK_CHECK(world.all_reduce(static_cast<double>(optimizer.state_bytes())) >= static_cast<double>(whole));
}

/// A checkpoint is whole: of a sharded run it goes on in one that is not, and the other way round.
template <class Comm> void checkpoints_are_whole(Comm& world, const std::string& path) {
  Training whole(sk::parallel::DataParallel{world});
  Training one(DataParallel{world, Sharded<1>{}});
  whole.epoch();
  one.epoch();
  one.trainer.save(path + ".sharded");
  whole.trainer.save(path + ".whole");
  Training from_sharded(sk::parallel::DataParallel{world});
  Training from_whole(DataParallel{world, Sharded<2>{}});
  from_sharded.trainer.load(path + ".sharded");
  from_whole.trainer.load(path + ".whole");
  whole.epoch();
  from_sharded.epoch(2);
  from_whole.epoch(2);
  const std::vector<float> expected(whole.model.parameters().begin(), whole.model.parameters().end());
  for (Model* m : {&from_sharded.model, &from_whole.model})
    RANK_CHECK(std::vector<float>(m->parameters().begin(), m->parameters().end()) == expected);
}

/// Under a transform of tensors each parameter is on one rank, whole; the weights are those of DataParallel, but for the rounding
/// of the norm behind it.
template <class Comm> void slices_end_at_parameters(Comm& world) {
  using namespace sk::optim;
  const auto chain = sk::optim::chain(Lars{.trust = 0.05f}, ClipNorm{0.05f}, Sgd{.lr = 0.5f, .momentum = 0.9});
  const auto trained = [&](const auto& policy) {
    return shard_cases::train<Net, double>(policy, {.epochs = 2, .batch = 19, .threads = 1 + world.rank() % 2}, chain);
  };
  const auto whole = trained(sk::parallel::DataParallel{world});
  shard_cases::require_close(trained(DataParallel{world, Sharded<1>{}}), whole, 1e-9);
  shard_cases::require_close(trained(DataParallel{world, {.bucket_bytes = 1}, Sharded<2>{}}), whole, 1e-9);

  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, chain, DataParallel{world, Sharded<2>{}}};
  const sk::plan::Range own = trainer.train_step().optimizer().owned();
  bool begins = own.begin == Model::sizes.stored, ends = own.end == Model::sizes.stored;
  for (const sk::plan::Entry& e : Model::program.parameters()) {
    begins = begins || e.offset == own.begin;
    ends = ends || e.offset == own.end;
  }
  RANK_CHECK(begins);
  RANK_CHECK(ends);
}

/// Of a network with one parameter a rank's slice is all of it, and others have none: files and commits have the whole state.
template <class Comm> void a_slice_may_be_all(Comm& world, const std::string& path) {
  using namespace sk::optim;
  const auto trained = [&](const auto& policy, const std::string& folder, int epochs, bool from_file = false) {
    const shard_cases::Images images;
    sk::Model<nn::Sequential<nn::Flatten, nn::Linear<3, sk::NoBias>>, sk::Shape<6, 6, 1>> model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, chain(Lars{.trust = 0.05f}, Sgd{.lr = 0.5f, .momentum = 0.9f}), policy};
    sk::FitOptions options{.epochs = epochs, .batch = 19, .progress = false, .threads = 1};
    if (from_file) trainer.load(folder + ".saved");
    else options.checkpoint = {.folder = folder};
    (void)trainer.fit(images.set(), options);
    if (!from_file) trainer.save(folder + ".saved");
    return std::vector<float>(std::as_const(model).parameters().begin(), std::as_const(model).parameters().end());
  };
  const auto expected = trained(DataParallel{world}, path + "whole", 2);
  const auto goes_on = [&](const auto& policy, const std::string& folder) {
    RANK_CHECK(trained(policy, folder, 1) != expected);
    for (const bool from_file : {true, false}) {  // or from the commit
      const auto got = trained(DataParallel{world}, folder, 2, from_file);
      for (std::size_t i = 0; i < expected.size(); ++i) RANK_CHECK(got[i] == Approx(expected[i]).margin(1e-5).epsilon(0));
    }
  };
  goes_on(DataParallel{world, Sharded<1>{}}, path + "one");
  goes_on(DataParallel{world, Sharded<2>{}}, path + "two");
}

}  // namespace sharded_cases
