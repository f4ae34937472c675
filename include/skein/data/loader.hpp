// SPDX-License-Identifier: Apache-2.0
// Serves a data set in batches: this rank's part of each global batch, in the epoch's order, staged in memory that is made
// once. A thread may stage ahead (it sleeps when there is nothing to do); without it the batch is staged when asked for.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/workers.hpp"
#include "batch.hpp"
#include "host_memory.hpp"
#include "partition.hpp"
#include "permutation.hpp"
#include "view.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Whether a thread stages batches ahead. automatic: where there are more cores than `busy_threads`.
enum class Prefetch { automatic, on, off };

/// What a Loader is made of. `.batch` counts samples of a step over all ranks, `.batch_per_rank` those of one rank: give one.
struct LoaderOptions {
  long batch = 0;
  long batch_per_rank = 0;
  bool shuffle = true;  ///< false: in the order of the data set
  Seed seed{};          ///< with the epoch, the key of the order
  int ranks = 1, rank = 0;
  int shards = 0;  ///< not 0: a batch is cut into so many virtual shards, of which a rank has whole ones
  Partition partition = Partition::shared;
  std::span<const std::int64_t> sizes{};  ///< Partition::local: the shard sizes of all ranks (copied)
  LastBatch last = LastBatch::keep;
  Prefetch prefetch = Prefetch::automatic;
  int busy_threads = 1;  ///< threads that compute meanwhile (all ranks' on these cores)
  HostMemory memory{};   ///< what the batches are staged in
  int held = 0;          ///< so many batches stay as they are while later ones are asked for
};

/// A place between two steps: the next batch is that of `step` in `epoch`. What a checkpoint keeps.
struct Position {
  std::int64_t epoch = 0, step = 0;
  friend constexpr bool operator==(const Position&, const Position&) = default;
};

/// Batches of a data set, which must outlive the loader. `for (const auto& batch : loader.epoch(e))`. One user thread.
/// Order, batches and positions are the same with and without prefetching.
template <class Scalar = float> class Loader {
  static_assert(std::is_same_v<Scalar, float> || std::is_same_v<Scalar, double>, "a Loader stages samples as float or double");

 public:
  /// Makes all staging memory. Throws ArgumentError for options that contradict each other.
  Loader(DatasetView data, const LoaderOptions& options)
      : data_(data), options_(options), sizes_(options.sizes.begin(), options.sizes.end()) {
    options_.sizes = sizes_;
    check();
    batch_ = BatchSize{options.batch, options.batch_per_rank}.global(options.ranks);
    const bool local = options_.partition == Partition::local;
    steps_ = local ? local_steps(sizes_, batch_, options_.last) : shared_steps(data_.size(), batch_, options_.last);
    // Rounded up: the parts of a smaller last batch may fall to other ranks than those of a full one.
    capacity_ = local             ? static_cast<long>(local_batch(batch_, options_.ranks, options_.rank))
                : options_.shards ? shards_capacity(batch_, shards())
                                  : (batch_ + options_.ranks - 1) / options_.ranks;
    if (capacity_ > data_.size()) capacity_ = static_cast<long>(data_.size());
    capacity_ = std::max<long>(capacity_, 1);
    prefetching_ = options_.prefetch == Prefetch::on ||
                   (options_.prefetch == Prefetch::automatic && available_cores() > options_.busy_threads);
    const int count = (prefetching_ ? slots : 1) + options_.held;
    slots_.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) slots_.emplace_back(data_, capacity_, options_);
    if (prefetching_) thread_ = std::thread([this] { serve(); });
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader() {
    if (!prefetching_) return;
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_.notify_one();
    thread_.join();
  }

  const DatasetView& dataset() const { return data_; }
  std::int64_t steps() const { return steps_; }  ///< of an epoch, the same on every rank
  long batch() const { return batch_; }          ///< samples of a full step over all ranks
  long capacity() const { return capacity_; }    ///< the most samples that a batch of this rank has
  bool prefetching() const { return prefetching_; }
  /// Seconds that the user's thread has spent on batches so far: staging, or waiting for the thread that does.
  double waited() const { return waited_; }

  /// The next batch that has not been served. After the last of an epoch: step 0 of the next.
  Position position() const { return position_; }
  /// The next `epoch(at.epoch)` begins at `at.step`; other epochs at 0. Throws ArgumentError for a step that is not there.
  void seek(Position at) {
    if (at.epoch < 0 || at.step < 0 || at.step > steps_)
      throw ArgumentError("loader: step " + std::to_string(at.step) + " of epoch " + std::to_string(at.epoch) +
                          " is not within " + std::to_string(steps_) +
                          " steps an epoch: the position belongs to another data set, batch or number of ranks");
    position_ = at.step == steps_ && steps_ > 0 ? Position{at.epoch + 1, 0} : at;
    pending_ = position_;
  }

  /// The range of an epoch's batches.
  class Epoch {
   public:
    class Iterator {
     public:
      using value_type = Batch<Scalar>;
      using difference_type = std::ptrdiff_t;
      using iterator_concept = std::input_iterator_tag;
      Iterator() = default;
      const Batch<Scalar>& operator*() const { return *batch_; }
      const Batch<Scalar>* operator->() const { return batch_; }
      Iterator& operator++() {
        ++step_;
        if (step_ < end_) batch_ = &loader_->take(epoch_, step_);
        else loader_->finish();
        return *this;
      }
      void operator++(int) { ++*this; }
      friend bool operator==(const Iterator& i, std::default_sentinel_t) { return i.step_ >= i.end_; }

     private:
      friend class Epoch;
      Iterator(Loader* loader, std::int64_t epoch, std::int64_t step, std::int64_t end)
          : loader_(loader), epoch_(epoch), step_(step), end_(end) {
        if (step >= end) return;
        loader_->begin(epoch, step);
        batch_ = &loader_->take(epoch, step);
      }
      Loader* loader_ = nullptr;
      const Batch<Scalar>* batch_ = nullptr;
      std::int64_t epoch_ = 0, step_ = 0, end_ = 0;
    };
    Iterator begin() const { return Iterator(loader_, epoch_, first_, loader_->steps_); }
    std::default_sentinel_t end() const { return {}; }

   private:
    friend class Loader;
    Epoch(Loader* loader, std::int64_t epoch, std::int64_t first) : loader_(loader), epoch_(epoch), first_(first) {}
    Loader* loader_;
    std::int64_t epoch_, first_;
  };

  /// The batches of epoch e, from its first step, or from where seek() said. Leaving the loop early is fine.
  Epoch epoch(std::int64_t e) {
    const std::int64_t first = pending_ && pending_->epoch == e ? pending_->step : 0;
    pending_.reset();
    return Epoch(this, e, first);
  }

  /// What this rank serves in a step: for executors that stage parts of a batch themselves, in their own threads.
  Share share(std::int64_t step) const {
    if (options_.partition == Partition::local) return local_share(sizes_, batch_, options_.rank, step);
    if (options_.shards) return shared_share(data_.size(), batch_, shards(), step);
    return shared_share(data_.size(), batch_, options_.ranks, options_.rank, step);
  }
  /// The order of an epoch.
  Permutation order(std::int64_t e) const {
    if (!options_.shuffle) return Permutation(data_.size());
    const bool local = options_.partition == Partition::local;
    return Permutation(data_.size(), options_.seed, e, local ? 1 + static_cast<std::uint64_t>(options_.rank) : 0);
  }

 private:
  static constexpr int slots = 3;  // one in use, two ahead: the thread is woken every other step

  struct Slot {
    Slot(const DatasetView& data, long capacity, const LoaderOptions& options)
        : x(static_cast<std::size_t>(capacity * sample_pitch(data.sample_extents())), options.memory),
          indices(static_cast<std::size_t>(capacity)) {
      batch.sample = data.sample_extents();
      batch.pitch = sample_pitch(batch.sample);
      batch.x = x.data();
      batch.indices = indices.data();
      batch.held = options.held;
      if (data.target().kind == TargetKind::label) {
        batch.labels_each = data.target().each;
        labels = HostArray<std::int32_t>(static_cast<std::size_t>(capacity * batch.labels_each), options.memory);
        batch.labels = labels.data();
      } else if (data.target().kind == TargetKind::vector) {
        batch.target_length = data.target().count;
        batch.target_pitch = row_pitch(batch.target_length);
        targets = HostArray<Scalar>(static_cast<std::size_t>(capacity * batch.target_pitch), options.memory);
        batch.targets = targets.data();
      }
    }
    HostArray<Scalar> x, targets;
    HostArray<std::int32_t> labels;
    HostArray<std::int64_t> indices;
    Batch<Scalar> batch;
  };

  plan::VirtualShards shards() const { return plan::virtual_shards(options_.shards, options_.ranks, options_.rank); }

  void check() const {
    const LoaderOptions& o = options_;
    if (!data_) throw ArgumentError("loader: the data set is empty: give it a data set");
    if (o.ranks < 1 || o.rank < 0 || o.rank >= o.ranks)
      throw ArgumentError("loader: rank " + std::to_string(o.rank) + " is not one of " + std::to_string(o.ranks));
    if (o.shards != 0 && o.partition == Partition::local)
      throw ArgumentError(
          "loader: virtual shards are cut out of global batches: with Partition::local each rank has batches of its own; use "
          "Partition::shared");
    if (o.shards != 0 && o.shards < o.ranks)
      throw ArgumentError("loader: " + std::to_string(o.shards) + " virtual shards are too few for " + std::to_string(o.ranks) +
                          " ranks: each rank holds at least one");
    if (o.partition == Partition::shared && data_.size() == 0) throw ArgumentError("loader: the data set has no samples");
    if (o.partition == Partition::shared && !sizes_.empty())
      throw ArgumentError("loader: .sizes belongs to Partition::local; a shared data set has one size");
    if (o.partition == Partition::shared) return;
    if (static_cast<int>(sizes_.size()) != o.ranks)
      throw ArgumentError("loader: Partition::local needs .sizes of all " + std::to_string(o.ranks) + " ranks, " +
                          std::to_string(sizes_.size()) + " are given");
    if (sizes_[static_cast<std::size_t>(o.rank)] != data_.size())
      throw ArgumentError("loader: .sizes says that rank " + std::to_string(o.rank) + " has " +
                          std::to_string(sizes_[static_cast<std::size_t>(o.rank)]) + " samples, its data set has " +
                          std::to_string(data_.size()));
  }

  /// Fills a slot with this rank's part of a step.
  void stage(Slot& slot, std::int64_t epoch, std::int64_t step) {
    const Share part = share(step);
    const long n = part.count();
    order_.fill(part.begin, n, slot.indices.data());
    const Indices indices(slot.indices.data(), static_cast<std::size_t>(n));
    Batch<Scalar>& b = slot.batch;
    if (n > 0)
      data_.serve(indices, Destination<Scalar>{slot.x.data(), b.pitch, b.labels ? slot.labels.data() : nullptr,
                                               b.targets ? slot.targets.data() : nullptr, b.target_pitch, epoch});
    b.count = n;
    b.global_count = part.global_count;
    b.first = part.first;
    b.epoch = epoch;
    b.step = step;
  }

  /// Points the loader, and its thread, at a step.
  void begin(std::int64_t epoch, std::int64_t step) {
    std::unique_lock lock(mutex_);
    active_ = false;
    ready_.wait(lock, [&] { return !filling_; });
    order_ = order(epoch);
    epoch_ = epoch;
    shift_ = last_ + 1 - step;  // the slots go round over epochs too: what is held stays held
    filled_ = taken_ = step;
    error_ = nullptr;
    active_ = true;
    lock.unlock();
    if (prefetching_) work_.notify_one();
  }

  const Batch<Scalar>& take(std::int64_t epoch, std::int64_t step) {
    const auto start = std::chrono::steady_clock::now();
    Slot& slot = slot_of(step);
    std::unique_lock lock(mutex_);
    if (!active_ || epoch_ != epoch || taken_ > step)
      throw ArgumentError("loader: two loops over epochs of one loader are mixed: finish one before the next begins");
    last_ = shift_ + step;
    if (!prefetching_) {
      stage(slot, epoch, step);
    } else {
      taken_ = step;  // what came before is free again
      if (filled_ - taken_ <= 1) {
        lock.unlock();
        work_.notify_one();
        lock.lock();
      }
      ready_.wait(lock, [&] { return filled_ > step || error_; });
      if (filled_ <= step) {
        active_ = false;
        std::rethrow_exception(std::exchange(error_, nullptr));
      }
    }
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    position_ = step + 1 < steps_ ? Position{epoch, step + 1} : Position{epoch + 1, 0};
    return slot.batch;
  }
  void finish() {
    std::lock_guard lock(mutex_);
    active_ = false;
  }
  Slot& slot_of(std::int64_t step) {
    return slots_[static_cast<std::size_t>((shift_ + step) % static_cast<std::int64_t>(slots_.size()))];
  }

  /// The prefetch thread: fills free slots in order, sleeps otherwise.
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [&] { return stop_ || (active_ && !error_ && filled_ < steps_ && filled_ - taken_ < slots); });
      if (stop_) return;
      const std::int64_t step = filled_;
      filling_ = true;
      lock.unlock();
      std::exception_ptr error;
      try {
        stage(slot_of(step), epoch_, step);
      } catch (...) { error = std::current_exception(); }
      lock.lock();
      filling_ = false;
      if (error) error_ = error;
      else ++filled_;
      ready_.notify_one();
    }
  }

  DatasetView data_;
  LoaderOptions options_;
  std::vector<std::int64_t> sizes_;
  long batch_ = 0, capacity_ = 0;
  std::int64_t steps_ = 0;
  bool prefetching_ = false;
  std::vector<Slot> slots_;
  Position position_{};
  std::optional<Position> pending_;
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable work_, ready_;
  Permutation order_{0};
  std::int64_t epoch_ = 0, filled_ = 0, taken_ = 0;
  std::int64_t shift_ = 0, last_ = -1;  // step s is in slot (shift_ + s); the last that was served, counted so
  bool active_ = false, filling_ = false, stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace skein::inline SKEIN_ABI::data
