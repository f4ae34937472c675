// SPDX-License-Identifier: Apache-2.0
// The arrays of a pipeline's training where stages differ in what they have of them.
#include "../../support/pipeline_cases.hpp"
#include "../../support/at_every_size.hpp"

#include <skein/train/callbacks.hpp>

namespace cases = pipeline_cases;
namespace sk = skein;
namespace nn = skein::nn;
using support::on_threads;

namespace pipeline_arrays_test {
using Three = sk::parallel::Pipeline<nn::Linear<8>, nn::Sequential<nn::Tanh>, nn::Linear<3>>;
const sk::optim::Sgd sgd{.lr = 0.5f, .momentum = 0.5f};

/// A fit that keeps the weights of its best epoch, the first: the rate is then too large.
template <class Trainer> void fit(Trainer& trainer, const sk::FitOptions& more) {
  const cases::Points points;
  const auto data = points.set();
  sk::FitOptions o = more;
  o.epochs += 3, o.batch = 24, o.validate = data, o.progress = false, o.threads = 1;
  o.schedule = sk::optim::multi_step({5}, 40);
  o.callbacks.add(sk::train::EarlyStopping{.patience = 5, .restore_best = true});
  trainer.fit(data, o);
}
}  // namespace pipeline_arrays_test
using namespace pipeline_arrays_test;

TEST_CASE("weights that a pipeline keeps are written and read where a stage has none", "[parallel]") {
  for (const int replicas : {1, 2})
    on_threads(3 * replicas, [&](auto& world) {
      const support::TemporaryFolder folder;
      const std::string path = world.broadcast(folder / "kept", 0);
      const Three pipeline{world, {.micro_batches = 2, .replicas = replicas}};
      auto model = pipeline.template model<cases::Input>(sk::Seed{9});
      sk::Trainer trainer{model, nn::CrossEntropy{}, sgd, pipeline};
      fit(trainer, {.checkpoint = {.folder = path + "_run", .every = 3}});
      trainer.save(path);
      RANK_CHECK(world.rank() > 0 || support::read_text(path).find("kept_weights/") != std::string::npos);
      auto other = pipeline.template model<cases::Input>(sk::Seed{10});
      sk::Trainer reader{other, nn::CrossEntropy{}, sgd, pipeline};
      reader.load(path);
      for (int s = 0; s < Three::stage_count; ++s) {
        const auto mine = model.parameters(s), read = other.parameters(s);
        RANK_CHECK(std::equal(mine.begin(), mine.end(), read.begin()));
      }
      reader.save(path + "_again");  // with what it has read of the kept weights
      RANK_CHECK(world.rank() > 0 || support::read_file(path + "_again") == support::read_file(path));
    });
}
