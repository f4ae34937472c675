// SPDX-License-Identifier: Apache-2.0
// What a save and a load throw where the fault is not the file's: an exception of the policy's, which its caller gets as it is.
#include <catch2/catch.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

#include "support/temporary_folder.hpp"
#include "support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// What the hook before a save does on a rank; each rank's thread has its own.
thread_local std::function<void()> hook_before_save;
/// A policy of the user's, with such a hook.
struct WithHook : sk::parallel::OptionBase {
  static constexpr sk::parallel::OptionKind kind = sk::parallel::OptionKind::when;
  template <class Inner> class Around : public Inner {
   public:
    using Inner::Inner;
    void before_save() {
      Inner::before_save();
      if (hook_before_save) hook_before_save();
    }
  };
};
/// What taking the policy's state from a file does on a rank.
thread_local std::function<void()> hook_in_load;
/// A policy of the user's that keeps state, with such a hook.
struct WithState : sk::parallel::OptionBase {
  static constexpr sk::parallel::OptionKind kind = sk::parallel::OptionKind::when;
  template <class Inner> class Around : public Inner {
   public:
    using Inner::Inner;
    static constexpr sk::parallel::Capabilities capabilities =
        Inner::capabilities | sk::parallel::Capabilities{sk::parallel::Capability::keeps_state};
    std::string saved_as() const { return "with a state"; }
    template <class Archive> void serialize(Archive& archive, unsigned) {
      (archive & steps_);
      if (Archive::is_loading::value && hook_in_load) hook_in_load();
    }

   private:
    int steps_ = 0;
  };
};
using Model = sk::Model<nn::Linear<1>, sk::Shape<2>>;
const auto rows = sk::data::from_tensors(std::vector<float>(2 * 8, 1), sk::Extents{1, {2}}, std::vector<float>(8, 1));
/// train(trainer) on each of so many ranks, of which the last one's hook throws; what each hears.
template <class Train> std::vector<std::string> heard(int ranks, const Train& train) {
  std::vector<std::string> words(static_cast<std::size_t>(ranks));
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    Model model{sk::Seed{1}};
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world, WithHook{}}};
    hook_before_save = [last = world.rank() + 1 == ranks] {
      if (last) throw Broken("the sensor does not answer");
    };
    auto& own = words[static_cast<std::size_t>(world.rank())];
    try {
      train(trainer);
    } catch (const Broken& e) { own = std::string("own: ") + e.what(); } catch (const sk::Error& e) {
      own = e.what();
    }
    hook_before_save = nullptr;
  });
  return words;
}
}  // namespace

TEST_CASE("what saving a policy throws reaches the caller of save as it is, and the others hear why", "[train]") {
  const support::TemporaryFolder folder;
  for (const int ranks : {1, 2}) {
    const auto words = heard(ranks, [&](auto& trainer) { trainer.save(folder / "a"); });
    CHECK(words.back() == "own: the sensor does not answer");
    if (ranks == 2)
      CHECK_THAT(words[0], Catch::Contains("save: rank 1 could not write") && Catch::Contains(": the sensor does not answer"));
  }
}

TEST_CASE("what saving a policy throws reaches the caller of a fit that writes commits", "[train]") {
  for (const bool async : {false, true})
    for (const int ranks : {1, 2}) {
      const support::TemporaryFolder folder;
      const auto words = heard(ranks, [&](auto& trainer) {
        trainer.fit(rows, {.epochs = 2,
                           .batch = 4,
                           .progress = false,
                           .threads = 1,
                           .checkpoint = {.folder = folder / "run", .every = 1, .async = async}});
      });
      CHECK(words.back() == "own: the sensor does not answer");
      if (ranks == 2) CHECK_THAT(words[0], Catch::Contains("could not be written: rank 1: the sensor does not answer"));
    }
}

TEST_CASE("a folder that is not there is a fault of the file", "[train]") {
  const support::TemporaryFolder folder;
  Model model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{}};
  CHECK_THAT(support::thrown<sk::FileError>([&] { trainer.save(folder / "none/a"); }), Catch::Contains("could not be saved: "));
}

TEST_CASE("what loading a policy throws reaches the caller of a fit that goes on from a commit, and the others hear why",
          "[train]") {
  for (const int ranks : {1, 2}) {
    const support::TemporaryFolder folder;
    std::vector<std::string> words(static_cast<std::size_t>(ranks));
    sk::spawn(ranks, [&](sk::ThreadComm& world) {
      const auto fit = [&](int epochs) {
        Model model{sk::Seed{1}};
        sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world, WithState{}}};
        trainer.fit(rows,
                    {.epochs = epochs, .batch = 4, .progress = false, .threads = 1, .checkpoint = {.folder = folder / "run"}});
        return trainer.train_step().steps();
      };
      fit(1);
      if (world.rank() + 1 == ranks) hook_in_load = [] { throw Broken("the sensor does not answer"); };
      auto& own = words[static_cast<std::size_t>(world.rank())];
      try {
        fit(2);
      } catch (const Broken& e) { own = std::string("own: ") + e.what(); } catch (const sk::CommError& e) {
        own = e.what();
      } catch (const sk::FileError& e) { own = std::string("of the file: ") + e.what(); }
      hook_in_load = nullptr;
      world.barrier();
      if (fit(2) != 4) own += "; the fit after it has not gone on";
    });
    CHECK(words.back() == "own: the sensor does not answer");
    if (ranks == 2)
      CHECK_THAT(words[0], Catch::Contains("fit: rank 1 could not load ") && Catch::EndsWith(": the sensor does not answer"));
  }
}
