// SPDX-License-Identifier: Apache-2.0
// The folder of a run as an option of fit: a path, and with it the code that reads and writes commits there. A program that names
// no folder makes none of these, and so compiles and links nothing of that code.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "commit_options.hpp"
#include "history.hpp"
#include "kept_objects.hpp"
#include "saved_training.hpp"
#include "training_position.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

struct LoadedTraining;
struct RecordsView;

/// The commits of one fit.
class FitCommits {
 public:
  virtual ~FitCommits() = default;
  /// Looks at where the training of a commit stands and at what is kept with it; what it throws, all ranks throw.
  using Check = std::function<void(const TrainingPosition& position, const KeptObjects& kept)>;
  /// Goes on from the newest commit that is whole on all ranks, if it is of a later step than `after`: null where there is none.
  /// All ranks call it. Throws ArgumentError where the newest one, of whatever step, is one of another fit than that which begins
  /// after so many epochs and steps, and what `check` throws, of where the commit's training stands and of what it keeps: before
  /// anything is taken.
  virtual std::unique_ptr<LoadedTraining> go_on(std::int64_t after, std::int64_t epochs, std::int64_t first_step,
                                                const Check& check) = 0;
  /// What is said of a training that has had all its epochs.
  virtual std::string nothing_to_do(const TrainingPosition& position, int epochs) const = 0;
  /// CommitWriter's functions: write a commit of the training as it is now, go on with one that is under way, and end it.
  virtual void commit(const RecordsView& records) = 0;
  virtual void after_step() = 0;
  virtual void finish() = 0;

  /// Is there since std::default_delete is outside of cold regions, and g++ compiles whatever a virtual call from there may
  /// reach: all that writes commits, in programs too that make none.
  struct Delete {
    void operator()(FitCommits* commits) const { delete commits; }
  };
  using Pointer = std::unique_ptr<FitCommits, Delete>;
};

/// The path of a folder, as `.checkpoint = {.folder = "run"}` has it. Empty: there is none.
class RunFolder {
 public:
  RunFolder() = default;
  RunFolder(const char* path) : RunFolder(std::string(path)) {}
  RunFolder(std::string path) : path_(std::move(path)), open_(&open) {}
  /// A std::filesystem::path, or what else has its path as a string().
  template <class Path>
  requires requires(const Path& path) {
    { path.string() } -> std::convertible_to<std::string>;
  }
  RunFolder(const Path& path) : RunFolder(std::string(path.string())) {}

  const std::string& path() const { return path_; }
  bool empty() const { return path_.empty(); }
  /// For fit: null where the path is empty.
  FitCommits::Pointer commits(CommitOptions options, SavedTraining& training) const {
    return empty() ? nullptr : open_(path_, options, training);
  }

 private:
  static FitCommits::Pointer open(const std::string& path, CommitOptions options, SavedTraining& training);

  std::string path_;
  FitCommits::Pointer (*open_)(const std::string&, CommitOptions, SavedTraining&) = nullptr;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "run_folder.ipp"
#endif
