// SPDX-License-Identifier: Apache-2.0
// The bodies of run_folder.hpp: the commits of a fit.
#pragma once
#include "../core/text.hpp"
#include "commit_training.hpp"
#include "commit_writer.hpp"
#include "run_folder.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
class CommitsOfFit final : public FitCommits {
 public:
  CommitsOfFit(const std::string& path, CommitOptions options, SavedTraining& training)
      : folder_(path), training_(training), writer_(folder_, options, training) {
    lock_for_ranks(folder_, training);
  }
  std::unique_ptr<LoadedTraining> go_on(std::int64_t after, std::int64_t epochs, std::int64_t first_step,
                                        const Check& check) override {
    const FoundCommit found = find_commit(folder_, training_);
    if (training_.rank() == 0) say_skipped(found, folder_.path());
    if (found.step < 0) return nullptr;
    path_ = folder_.commit(found.step);
    const CommitRecords records = records_of_commit(path_, training_);
    const TrainingPosition& position = records.position;
    if (position.base != epochs || position.first_step != first_step)
      throw ArgumentError(text(
          "fit: {} is a commit of another fit, which began after {} epochs and {} steps, this one after {} and {}: give each "
          "fit of a program a .checkpoint.folder of its own",
          path_, position.base, position.first_step, epochs, first_step));
    if (found.step <= after) return nullptr;
    check_commit(folder_, training_, [&] { check(position, records.kept); });
    return std::make_unique<LoadedTraining>(load_commit(path_, training_));
  }
  std::string nothing_to_do(const TrainingPosition& position, int epochs) const override {
    return text("nothing to do: {} has {} of {} epochs{}", path_, position.epoch, epochs,
                position.ended ? ", where a callback ended the fit" : "");
  }
  void commit(const RecordsView& records) override { writer_.commit(records); }
  void after_step() override { writer_.after_step(); }
  void finish() override { writer_.finish(); }

 private:
  CommitFolder folder_;
  SavedTraining& training_;
  CommitWriter writer_;
  std::string path_;
};
}  // namespace detail

SKEIN_INLINE FitCommits::Pointer RunFolder::open(const std::string& path, CommitOptions options, SavedTraining& training) {
  return FitCommits::Pointer(new detail::CommitsOfFit(path, options, training));
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
