// SPDX-License-Identifier: Apache-2.0
// What files ask of a training, whatever its network and policy are: a few virtual functions that hand over arrays and objects in
// the host's memory. The code of files is behind the classes that call them, so a program that saves nothing compiles none of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../comm/rank_names.hpp"
#include "../plan/program.hpp"
#include "saved_array.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Takes what is saved. Values must stay where they are until SavedTraining::saved().
class SectionSink {
 public:
  /// The values of `range` of the arena, the first of which is at `values`.
  virtual void array(const SavedArray& array, plan::Range range, const void* values) = 0;
  virtual void object(const char* name, std::vector<std::byte>&& bytes) = 0;
  /// What rank r of n saves of an array of so many scalars that all have.
  virtual plan::Range share(std::span<const plan::Entry> entries, long stored, int n, int r) = 0;

 protected:
  ~SectionSink() = default;
};
/// Gives what was saved.
class SectionSource {
 public:
  virtual bool has(const SavedArray& array) = 0;
  /// Fills the whole arena, but for the gaps of its rows. Throws FileError.
  virtual void array(const SavedArray& array, void* values) = 0;
  /// False where there is none of that name.
  virtual bool object(const char* name, std::vector<std::byte>& bytes) = 0;
  /// What begins so and was not asked for stays in the file.
  virtual void leave(const char* prefix) = 0;
  /// Throws FileError where there is more than was asked for: what follows may change the training.
  virtual void finish() = 0;
  virtual const std::string& path() const = 0;

 protected:
  ~SectionSource() = default;
};

/// A training, as files see it.
class SavedTraining {
 public:
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual std::int64_t steps() = 0;  ///< of the optimizer
  virtual void set_steps(std::int64_t n) = 0;
  /// The optimizer's hyper-parameters by name, the number of its arrays, and where they are: "replicated", "sliced", "staged".
  virtual std::string optimizer_lines() = 0;
  virtual int state_arrays() = 0;
  virtual std::string loss_name() = 0;
  virtual std::span<const plan::LayerNode> layers() = 0;
  virtual const char* placement() = 0;
  /// What this rank writes: all of it, rank 0 alone; or its share. A call of all ranks.
  virtual void save_to(SectionSink& sink, bool whole) = 0;
  /// Frees what save_to() has gathered.
  virtual void saved() = 0;
  /// Takes arrays and objects from the source, all or nothing.
  virtual void load_from(SectionSource& source) = 0;
  /// After it: the ranks make their weights one, as at the start, or take those of their own, where a commit has them. A call of
  /// all ranks.
  virtual void start_again() = 0;
  virtual void reduce(std::span<double> values) = 0;
  virtual std::vector<std::string> texts_of_all(const std::string& own) = 0;
  /// What messages call the ranks of these.
  virtual comm::RankNames rank_names() const { return {}; }
  /// Ranks that serve weights have no part in reduce(), and none in texts_of_all() while they serve.
  virtual bool has_servers() const { return false; }
  /// Its ranks' clocks are a simulator's, which a look at how long a disk takes must not move.
  virtual bool simulated_time() const { return false; }

 protected:
  ~SavedTraining() = default;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
