// SPDX-License-Identifier: Apache-2.0
// The bodies of commit_writer.hpp.
#pragma once
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>

#include "../core/text.hpp"
#include "commit_writer.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::vector<WrittenFile> detail::shards_of_all(SavedTraining& training, const std::string& path,
                                                            const WrittenFile& own, const FileFailure& failure) {
  const std::vector<std::byte> bytes = to_bytes(own);
  const std::vector<std::string> texts = agree_on_failure(
      training, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, failure.reason,
      [&] { failure.raise(path, "the checkpoint could not be written: "); },
      [&](int rank, const std::string& reason) {
        const bool absent = reason.find(std::strerror(ENOENT)) != std::string::npos;  // rank 0 has made it
        const bool elsewhere = absent && rank != training.rank_names().number(0);
        return text("the checkpoint {} could not be written: rank {}: {}{}", path, rank, reason,
                    elsewhere ? "; the folder has to be on a file system that all ranks share, or it was removed meanwhile" : "");
      });
  std::vector<WrittenFile> shards(texts.size());
  for (std::size_t r = 0; r < texts.size(); ++r) from_bytes(byte_span(texts[r]), shards[r], "what a rank says of its shard");
  return shards;
}

SKEIN_INLINE CommitWriter::~CommitWriter() {
  wait();
  if (stage_ != Stage::none && failure_.failed())
    std::fprintf(stderr, "fit: the checkpoint %s could not be written: %s\n", folder_.partial(step_).c_str(),
                 failure_.reason.c_str());
}

SKEIN_INLINE void CommitWriter::commit(const RecordsView& records) {
  finish();
  step_ = training_.steps();
  writer_ = {};
  failure_ = {};
  memory_.begin();
  detail::add_training(writer_, training_, records, {.whole = false, .snapshot = options_.async ? &memory_ : nullptr}, failure_);
  if (options_.async) training_.saved();
  facts_ = {{"step", std::to_string(step_)},
            {"epoch", std::to_string(records.position.base + records.position.epoch)},
            {"placement", training_.placement()}};
  begin(Stage::shards);
  if (!options_.async) finish();
}

SKEIN_INLINE void CommitWriter::begin(Stage stage) {
  stage_ = stage;
  steps_since_ = 0;
  done_ = stage == Stage::manifest && training_.rank() != 0;
  if (!options_.async || done_) return;
  try {
    thread_ = std::thread([this] {
      work();
      done_ = true;
    });
  } catch (const std::system_error&) {}  // no more threads: finish() does the work
}

/// Does this rank's work in the stage that has begun: no collectives, no exceptions.
SKEIN_INLINE void CommitWriter::work() {
  if (failure_.failed()) return;
  noting(failure_.reason, [&] {
    if (stage_ == Stage::shards) {
      own_ = folder_.write_shard(step_, training_.rank(), writer_);
      if (training_.ranks() > 1) return;
      shards_ = {own_};
    }
    folder_.publish(step_, shards_, facts_, options_.keep);
  });
}

SKEIN_INLINE void CommitWriter::wait() {
  if (thread_.joinable()) thread_.join();
}

SKEIN_INLINE void CommitWriter::after_step() {
  if (stage_ == Stage::none) return;
  ++steps_since_;
  if (training_.ranks() == 1) {
    if (done_) agree();
    return;
  }
  if ((steps_since_ & (steps_since_ - 1)) != 0) return;
  double busy[1] = {done_ ? 0.0 : 1.0};
  training_.reduce(busy);
  if (busy[0] == 0) agree();
}

SKEIN_INLINE void CommitWriter::finish() {
  while (stage_ != Stage::none)
    failure_.meet([&] {
      detail::while_ranks_meet(training_, [&] {
        if (thread_.joinable()) thread_.join();
        else if (!done_) work();
      });
      agree();
    });
}

/// The work of the stage is done on all ranks.
SKEIN_INLINE void CommitWriter::agree() {
  wait();
  const Stage stage = std::exchange(stage_, Stage::none);
  if (stage == Stage::shards && !options_.async) training_.saved();
  const std::string path = folder_.partial(step_);
  if (stage == Stage::manifest) own_ = {};
  std::vector<WrittenFile> shards = detail::shards_of_all(training_, path, own_, failure_);
  if (stage == Stage::manifest || training_.ranks() == 1) return;
  shards_ = std::move(shards);
  begin(Stage::manifest);
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
