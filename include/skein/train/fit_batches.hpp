// SPDX-License-Identifier: Apache-2.0
// The batches of a fit: the loaders of its data sets, memory for every batch that will come, and what decides which samples a
// step serves.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "../data/loader.hpp"
#include "check_fit.hpp"
#include "evaluate_loader.hpp"
#include "fitted_training.hpp"
#include "options.hpp"
#include "training_position.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// The batches of one fit on one rank. The options outlive it.
template <class Scalar> class FitBatches {
 public:
  using Loader = data::Loader<Scalar>;

  /// A call of all ranks. Throws ArgumentError where an epoch has no step.
  FitBatches(SavedTraining& training, const data::DatasetView& train, const FitOptions& options, const FitFacts& facts, Seed seed)
      : options_(options), facts_(facts), seed_(seed), sizes_(sizes_of_shards(training, train)), training_(train, of_training()) {
    if (options.validate) validation_ = std::make_unique<Loader>(options.validate, of_validation());
  }

  Loader& training() { return training_; }
  /// Null where there is none.
  Loader* validation() { return validation_.get(); }
  /// Decides the order of samples.
  Seed seed() const { return seed_; }

  /// All memory, and whatever layers want beforehand.
  void reserve(EvaluatedTraining<Scalar>& training, ExecutorOptions memory) {
    memory.capacity = std::max(validation_ ? std::max(training_.capacity(), validation_->capacity()) : training_.capacity(),
                               even_part_of_local());
    training.reserve(memory);
    long sizes[4];
    long* end = sizes;
    for (auto* l : {&training_, validation_.get()})
      for (std::int64_t s : {std::int64_t{0}, l ? l->steps() - 1 : 0})
        if (l && l->steps() > 0)
          if (const long n = l->share(s).count(); std::find(sizes, end, n) == end) *end++ = n;
    for (const long* n = sizes; n < end; ++n) training.prepare(*n);
  }

  EpochOrder order() const {
    std::int64_t samples = sizes_.empty() ? training_.dataset().size() : 0;
    for (const std::int64_t n : sizes_) samples += n;
    return {.seed = seed_.value,
            .batch = training_.batch(),
            .samples = samples,
            .shards = hash_of_shards({sizes_.data(), sizes_.size()}),
            .shuffle = options_.loader.shuffle,
            .keeps_last = options_.loader.last == data::LastBatch::keep};
  }

 private:
  /// Samples of each rank's part under Partition::local; else none.
  std::vector<std::int64_t> sizes_of_shards(SavedTraining& training, const data::DatasetView& train) const {
    if (options_.loader.partition != data::Partition::local) return {};
    std::vector<double> sizes(static_cast<std::size_t>(facts_.parts), 0);
    if (facts_.scores) sizes[static_cast<std::size_t>(facts_.part)] = static_cast<double>(train.size());
    training.reduce({sizes.data(), sizes.size()});
    return {sizes.begin(), sizes.end()};
  }
  /// The mean part of Partition::local's largest batch, rounded up: pipelines beside each other cut micro-batches by the samples
  /// of all of them, whatever their own part is.
  long even_part_of_local() const {
    return sizes_.empty() ? 0 : (training_.share(0).global_count + facts_.parts - 1) / facts_.parts;
  }
  data::LoaderOptions of_training() const {
    data::LoaderOptions o = facts_.loader;
    o.name = "the training data set";
    o.batch = options_.batch;
    o.batch_per_rank = options_.loader.batch_per_rank;
    o.shuffle = options_.loader.shuffle;
    o.seed = seed_;
    o.ranks = facts_.parts;
    o.rank = facts_.part;
    o.shards = facts_.virtual_shards;
    o.partition = options_.loader.partition;
    o.last = options_.loader.last;
    o.sizes = {sizes_.data(), sizes_.size()};
    return fetched(o);
  }
  data::LoaderOptions of_validation() const {
    return fetched(evaluation_options(facts_, training_.batch(), "the validation data set"));
  }
  /// Both sets are fetched alike; `busy_threads` compute on this machine, all ranks'.
  data::LoaderOptions fetched(data::LoaderOptions o) const {
    o.prefetch = options_.loader.prefetch;
    o.prefetch_threads = options_.loader.prefetch_threads;
    o.busy_threads = (options_.threads > 0 ? options_.threads : facts_.threads) * facts_.local_ranks;
    return o;
  }

  const FitOptions& options_;
  const FitFacts& facts_;
  Seed seed_;
  std::vector<std::int64_t> sizes_;
  Loader training_;
  std::unique_ptr<Loader> validation_;
};

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
