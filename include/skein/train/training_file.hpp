// SPDX-License-Identifier: Apache-2.0
// What a training is on disk: a checkpoint with a section for each parameter, buffer and optimizer array, by the names of the
// model's table (logical values, so that padding is no part of the format), and the place in the data: in one file, or as a
// commit of shards. Nothing here depends on a network.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../plan/program.hpp"
#include "agree_on_failure.hpp"
#include "checkpoint.hpp"
#include "history.hpp"
#include "host_copy.hpp"
#include "kept_objects.hpp"
#include "saved_training.hpp"
#include "training_position.hpp"
#include "weights_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// What a file has beside arrays: the steps, the place in the data, the history, the callbacks' bytes (what they are is known to
/// the fit that has them), the kept objects, the optimizer's hyper-parameters.
struct FileRecords {
  TrainingPosition position{};
  History history{};
  std::string callbacks{};
  KeptObjects kept{};
  std::string optimizer{};  ///< its hyper-parameters, as lines of NamedValues; empty in a file of an older version
};
/// The records of a file that is to be written, by reference to where they are.
struct RecordsView {
  const TrainingPosition& position;
  const History& history;
  const std::string& callbacks;
  const KeptObjects& kept;
  const FileFailure& callback_failure;  ///< why the callbacks have no bytes, where one's serialize() threw on this rank
};
namespace detail {
/// Memory for copies of the arrays that a rank writes; kept from one commit to the next, whose arrays are the same.
class SnapshotMemory {
 public:
  /// Begins the next commit: its copies take the place of those before.
  void begin() { next_ = 0; }
  /// Null where there is no memory.
  const void* copy(const void* from, std::size_t bytes);

 private:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  std::vector<Block> blocks_;
  std::size_t next_ = 0;
};
/// What of a training a file takes: all, of rank 0, or each rank's share; its arrays as they are while it is written, or copies.
struct SavedPart {
  bool whole = true;
  SnapshotMemory* snapshot = nullptr;
};
/// Adds the arrays and objects that this rank writes; the records on rank 0. Collective; `failure` is why it cannot.
void add_training(CheckpointWriter& writer, SavedTraining& training, const RecordsView& records, SavedPart part,
                  FileFailure& failure);
/// All ranks call it, each with its own work, which makes no collectives and does not throw; see while_busy.hpp.
void while_ranks_meet(SavedTraining& training, const std::function<void()>& work);
}  // namespace detail

/// Writes all that a training needs to go on to one file. All ranks call it, rank 0 writes. Where it cannot, that throws
/// FileError, where what is saved throws on a rank (a callback's serialize()), that rank the same; the others CommError.
void save_training(const std::string& path, SavedTraining& training, const RecordsView& records);

/// What was read beside the arrays, which are the training's now.
struct LoadedTraining {
  FileRecords records;
  std::uint64_t hash = 0;  ///< of the file
};
/// Reads a file or a commit of a training, whole or not at all. Throws FileError, with the path, where it does not fit.
LoadedTraining load_training(const std::string& path, SavedTraining& training, Verify verify = Verify::Whole,
                             const FileRead& before_change = {});

SKEIN_END_COLD

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "training_file.ipp"
#endif
