// SPDX-License-Identifier: Apache-2.0
// The trace of a step's buckets, whichever option of DataParallel exchanges them.
#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/parallel/exchange/bucket_timer.hpp>
#include <skein/parallel/data/reproducible.hpp>
#include <skein/parallel/data/sharded.hpp>

#include "../../support/shard_cases.hpp"

namespace sk = skein;
namespace parallel = skein::parallel;

namespace {
using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<9>, sk::nn::Linear<3>>;

/// Every bucket of the last step began and ended, in order, and the buckets are the whole arena.
template <class... Options> void is_filled() {
  sk::spawn(2, [](sk::ThreadComm& world) {
    const shard_cases::Images images;
    const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
    sk::Model<Net, sk::Shape<6, 6, 1>> model{sk::Seed{3}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f},
                        parallel::DataParallel{world, {.bucket_bytes = 1}, Options{}...}};
    trainer.fit(data, {.batch = 20, .progress = false, .threads = 1});
    const auto& state = trainer.train_step().policy_state();
    const std::span<const parallel::BucketTrace> trace = state.trace();
    RANK_CHECK(trace.size() == 2);
    long end = static_cast<long>(model.gradient_arena().size);
    double before = 0;
    for (const parallel::BucketTrace& b : trace) {
      RANK_CHECK(b.range.end == end);
      end = b.range.begin;
      RANK_CHECK(b.started >= before);
      RANK_CHECK(b.done >= b.started);
      before = b.started;
    }
    RANK_CHECK(end == 0);
    RANK_CHECK(state.backward_done() >= 0);
  });
}
}  // namespace

TEST_CASE("The trace is filled by DataParallel without options", "[parallel]") { is_filled<>(); }
TEST_CASE("The trace is filled under Sharded", "[parallel]") {
  is_filled<parallel::Sharded<1>>();
  is_filled<parallel::Sharded<2>>();
}
TEST_CASE("The trace is filled under Reproducible", "[parallel]") { is_filled<parallel::Reproducible<4>>(); }

TEST_CASE("A bucket that was seen complete keeps its time; a new step forgets it", "[parallel]") {
  const std::vector<skein::plan::Range> buckets = {{8, 16}, {0, 8}};
  parallel::BucketTimer timer(buckets);
  CHECK(timer.trace()[1].range == skein::plan::Range{0, 8});
  CHECK(timer.trace()[0].started == -1);
  timer.start();
  timer.begun(0);
  timer.complete(0);
  const double seen = timer.trace()[0].done;
  timer.complete(0);
  CHECK(timer.trace()[0].done == seen);
  timer.backward_ends();
  CHECK(timer.backward_done() >= seen);
  CHECK(timer.stop() >= 0);
  timer.start();
  timer.begun(0);
  CHECK(timer.trace()[0].done == -1);
  CHECK(timer.trace()[1].started == -1);
}
