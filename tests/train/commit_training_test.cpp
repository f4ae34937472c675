// SPDX-License-Identifier: Apache-2.0
// Commits between policies and numbers of ranks, which SavedArrays and SavedTraining show to files; and what does not wait for
// slow disks.
#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <pthread.h>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/train/checkpoint_reader.hpp>
#include <skein/train/commit_folder.hpp>
#include <skein/train/commit_training.hpp>
#include <skein/train/manifest.hpp>
#include <skein/train/trainer.hpp>
#include <skein/train/while_busy.hpp>

#include "../support/no_training.hpp"
#include "../support/points.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace st = skein::train;

namespace {

using Input = sk::Shape<20>;
using Pipeline =
    sk::parallel::Pipeline<nn::Sequential<nn::Linear<37>, nn::Tanh>, nn::Sequential<nn::Linear<5>, nn::Tanh, nn::Linear<3>>>;
using Model = sk::Model<Pipeline::network, Input>;
const sk::optim::Adam adam{.lr = 0.02f};

struct Points : support::Points {
  Points() : support::Points(48, {1, {20}}) {}
};
/// Keeps the weights of the first epoch, and is killed in the fourth where the folder says so.
struct Killed {};
struct KeepsFirst {
  bool kill = false;
  void on_epoch_end(const st::EpochRecord& r, st::FitControl& c) {
    if (r.epoch == 1) c.keep_weights();
  }
  void on_step_end(const st::StepRecord& r, st::FitControl&) {
    if (kill && r.step == 13) throw Killed{};
  }
};
sk::FitOptions options_of(const std::string& folder, int epochs) {
  sk::FitOptions o{.epochs = epochs, .batch = 12, .progress = false, .threads = 1};
  o.checkpoint = {.folder = folder};
  if (folder.ends_with("keeps")) o.callbacks = {KeepsFirst{.kill = epochs > 4}};
  return o;
}
/// The program of one policy; its weights and its optimizer's state afterwards, whole, as a file of the training has them.
void program(auto& model, const auto& policy, const std::string& folder, int epochs, const std::string& file) {
  const Points points;
  const auto data = points.set();
  sk::Trainer trainer{model, nn::CrossEntropy{}, adam, policy};
  trainer.fit(data, options_of(folder, epochs));
  trainer.save(file);
}
using Program = void (*)(sk::ThreadComm&, const std::string&, int, const std::string&);
struct Kind {
  const char* name;
  int ranks;
  Program run;
};
template <class Make>
void with(sk::ThreadComm& world, const std::string& folder, int epochs, const std::string& file, Make make) {
  Model model{sk::Seed{3}};
  program(model, make(world), folder, epochs, file);
}
void alone(sk::ThreadComm& world, const std::string& f, int e, const std::string& file) {
  with(world, f, e, file, [](sk::ThreadComm&) { return sk::parallel::Alone{}; });
}
void replicated(sk::ThreadComm& world, const std::string& f, int e, const std::string& file) {
  with(world, f, e, file, [](sk::ThreadComm& w) { return sk::parallel::DataParallel{w}; });
}
void sharded_1(sk::ThreadComm& world, const std::string& f, int e, const std::string& file) {
  with(world, f, e, file, [](sk::ThreadComm& w) { return sk::parallel::DataParallel{w, sk::parallel::Sharded<1>{}}; });
}
void sharded_2(sk::ThreadComm& world, const std::string& f, int e, const std::string& file) {
  with(world, f, e, file, [](sk::ThreadComm& w) { return sk::parallel::DataParallel{w, sk::parallel::Sharded<2>{}}; });
}
void averaged(sk::ThreadComm& world, const std::string& f, int e, const std::string& file) {
  with(world, f, e, file, [](sk::ThreadComm& w) { return sk::parallel::ModelAverage{w, sk::parallel::Period<2>{}}; });
}
void staged(sk::ThreadComm& world, const std::string& f, int e, const std::string& file) {
  Pipeline pipeline{world, {.micro_batch = 4}};
  auto model = pipeline.model<Input>(sk::Seed{3});
  program(model, pipeline, f, e, file);
}
const Kind kinds[] = {{"alone", 1, alone},
                      {"replicated 2", 2, replicated},
                      {"replicated 3", 3, replicated},
                      {"sharded 1 of 2", 2, sharded_1},
                      {"sharded 2 of 4", 4, sharded_2},
                      {"averaged 2", 2, averaged},
                      {"pipeline 2", 2, staged}};

/// The sections of a file that are arrays.
std::vector<float> arrays(const std::string& path) {
  st::CheckpointReader reader{path};
  std::vector<float> all;
  for (const char* prefix : {"parameters/", "optimizer/0/", "optimizer/1/"})
    for (const sk::plan::Entry& e : Model::program.parameters()) {
      std::vector<float> values(static_cast<std::size_t>(e.extents.count()));
      reader.read(prefix + std::string(std::string_view(Model::program.name(e))), e.extents, values.data(), e.extents.last());
      all.insert(all.end(), values.begin(), values.end());
    }
  return all;
}

}  // namespace

TEST_CASE("a commit of any policy goes on under any other, and on another number of ranks", "[train]") {
  for (const Kind& from : kinds) {
    const support::TemporaryFolder folder;
    const std::string run = folder / "run";
    sk::spawn(from.ranks, [&](sk::ThreadComm& world) { from.run(world, run, 2, folder / "before"); });
    const std::vector<float> saved = arrays(folder / "before");
    CHECK(arrays(run + "/step_00000008") == saved);  // the shards are the file
    for (const Kind& to : kinds) {
      CAPTURE(from.name, to.name);
      const std::string copy = folder / "copy", after = folder / "after";
      std::filesystem::copy(run, copy, std::filesystem::copy_options::recursive);
      // It has nothing to do, so that what it saves is what it has loaded: parameters and the whole state, bit by bit.
      sk::spawn(to.ranks, [&](sk::ThreadComm& world) { to.run(world, copy, 2, after); });
      CHECK(arrays(after) == saved);
      sk::spawn(to.ranks, [&](sk::ThreadComm& world) { to.run(world, copy, 3, after); });
      CHECK(arrays(after) != saved);  // and it goes on
      CHECK(std::filesystem::exists(copy + "/step_00000012/" + st::shard_name(to.ranks - 1)));
      std::filesystem::remove_all(copy);
    }
  }
}

TEST_CASE("kept weights of any policy are part of its commits, and go on under any other", "[train]") {
  const auto weights = [](const std::string& path) {
    std::vector<float> values = arrays(path);
    values.resize(values.size() / 3);  // without the optimizer's state
    return values;
  };
  for (const int f : {0, 1, 5, 6}) {
    const Kind& from = kinds[f];
    const support::TemporaryFolder folder;
    sk::spawn(from.ranks, [&](sk::ThreadComm& world) { from.run(world, folder / "one", 1, folder / "first"); });
    CHECK_THROWS(sk::spawn(from.ranks, [&](sk::ThreadComm& world) { from.run(world, folder / "run_keeps", 5, folder / "x"); }));
    for (const int t : {0, 1, 4, 6}) {
      const Kind& to = kinds[t];
      CAPTURE(from.name, to.name);
      const std::string copy = folder / "copy_keeps", after = folder / "after";
      std::filesystem::copy(folder / "run_keeps", copy, std::filesystem::copy_options::recursive);
      sk::spawn(to.ranks, [&](sk::ThreadComm& world) { to.run(world, copy, 4, after); });
      CHECK(weights(after) == weights(folder / "first"));
      std::filesystem::remove_all(copy);
    }
  }
}

TEST_CASE("shares are whole rows of the table where those are about even, and pieces where one row is most of it", "[train]") {
  const support::TemporaryFolder folder;
  sk::spawn(3, [&](sk::ThreadComm& world) { sharded_2(world, folder / "run", 1, folder / "file"); });
  int pieces = 0;
  for (int r = 0; r < 3; ++r) {
    const st::CheckpointReader shard{folder / ("run/step_00000004/" + st::shard_name(r))};
    for (const st::SectionInfo& s : shard.sections()) pieces += st::parse_piece(s.name).has_value();
  }
  CHECK(pieces > 0);
}

TEST_CASE("a rank whose disk is slower than the deadline is waited for, one that is gone is not", "[train]") {
  const auto slow = [](int milliseconds, bool gone) {
    sk::spawn(3,
              [&](sk::ThreadComm& world) {
                const auto work = [&] {
                  if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                };
                const auto any = [&](bool busy) { return world.all_reduce(busy ? 1 : 0) > 0; };
                while (gone && world.rank() == 0 && !world.engine().team().failure->happened())
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                st::detail::while_busy(work, any);
              },
              {.deadline = 3});  // a busy machine lets no rank wait so long
  };
  CHECK_NOTHROW(slow(4500, false));
  CHECK_THROWS(slow(0, true));
}

TEST_CASE("what the work or the others throw comes out when the work has ended", "[train]") {
  bool ended = false;
  CHECK_THROWS_WITH(st::detail::while_busy([&] { throw sk::Error("the disk"); }, [](bool busy) { return busy; }), "the disk");
  CHECK_THROWS_WITH(st::detail::while_busy(
                        [&] {
                          std::this_thread::sleep_for(std::chrono::milliseconds(200));
                          ended = true;
                        },
                        [](bool) -> bool { throw sk::CommError("gone"); }),
                    "gone");
  CHECK(ended);
}

TEST_CASE("where there are no more threads the work is done all the same", "[train]") {
  pthread_attr_t before, huge;
  REQUIRE(::pthread_getattr_default_np(&before) == 0);
  REQUIRE(::pthread_attr_init(&huge) == 0);
  REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 47) == 0);  // no thread has that much
  REQUIRE(::pthread_setattr_default_np(&huge) == 0);
  bool worked = false;
  int asked = 0;
  CHECK_NOTHROW(st::detail::while_busy([&] { worked = true; }, [&](bool busy) { return ++asked, busy; }));
  CHECK(worked);
  CHECK(asked == 1);
  REQUIRE(::pthread_setattr_default_np(&before) == 0);
  ::pthread_attr_destroy(&before), ::pthread_attr_destroy(&huge);
}

TEST_CASE("how long a disk takes moves no simulated clock", "[train]") {
  struct Simulated final : support::NoTraining {
    int asked = 0;
    bool simulated = true;
    int ranks() const override { return 2; }
    bool simulated_time() const override { return simulated; }
    void reduce(std::span<double>) override { ++asked; }
  } training;
  const auto slow_disk = [] { std::this_thread::sleep_for(std::chrono::milliseconds(120)); };
  st::detail::while_ranks_meet(training, slow_disk);
  CHECK(training.asked == 1);
  training.simulated = false;
  st::detail::while_ranks_meet(training, slow_disk);
  CHECK(training.asked > 2);
}
