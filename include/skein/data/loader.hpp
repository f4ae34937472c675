// SPDX-License-Identifier: Apache-2.0
// Serves a data set in batches: this rank's part of each global batch, in the epoch's order, staged in memory that is made
// once. Threads may stage ahead, a batch each (they sleep when there is nothing to do); without them the batch is staged when
// asked for.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
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

/// Whether threads stage batches ahead. automatic: where there are more cores than `busy_threads`, or where their number is
/// given.
enum class Prefetch { automatic, on, off };

namespace detail {
/// Throws ArgumentError for a number that is no value of the setting's enumeration.
inline void demand_value(const char* who, const char* setting, Prefetch value) {
  skein::detail::demand_value(who, setting, value, Prefetch::off, "automatic, on or off");
}
namespace refused {
template <class> inline constexpr bool by_this_name = false;
/// A member that takes no memory and refuses every value: PyTorch's name of an option.
struct BatchSize {
  constexpr BatchSize() = default;
  template <class T> constexpr BatchSize(const T&) {
    static_assert(
        by_this_name<T>,
        "a Loader has no .batch_size: .batch is the samples of a batch over all ranks, .batch_per_rank those of a rank");
  }
};
}  // namespace refused
}  // namespace detail

/// What a Loader is made of. `.batch` counts samples of a batch over all ranks, `.batch_per_rank` those of one rank: give one.
struct LoaderOptions {
  long batch = 0;
  long batch_per_rank = 0;
  [[no_unique_address]] detail::refused::BatchSize batch_size{};
  bool shuffle = true;  ///< false: in the order of the data set
  Seed seed{};          ///< with the epoch, the key of the order
  int ranks = 1, rank = 0;
  int shards = 0;  ///< not 0: a batch is cut into so many virtual shards, of which a rank has whole ones
  Partition partition = Partition::shared;
  std::span<const std::int64_t> sizes{};  ///< Partition::local: the shard sizes of all ranks (copied)
  LastBatch last = LastBatch::keep;
  Prefetch prefetch = Prefetch::automatic;
  /// 0: one; of a set that prefers_threads, one on each core that is not busy, at most four. A number that is given is
  /// started on busy cores too, but for Prefetch::off.
  int prefetch_threads = 0;
  int busy_threads = 1;               ///< threads that compute meanwhile (all ranks' on these cores)
  HostMemory memory{};                ///< what the batches are staged in
  int held = 0;                       ///< so many batches stay as they are while later ones are asked for
  bool tokens = false;                ///< samples are served as 32-bit integers, for a network that takes Tokens<T>
  const char* name = "the data set";  ///< what messages call it; a literal, or what outlives the loader's batches
};

/// A place between two steps: the next batch is that of `step` in `epoch`. What a checkpoint keeps.
struct Position {
  std::int64_t epoch = 0, step = 0;
  friend constexpr bool operator==(const Position&, const Position&) = default;
};

/// Batches of a data set, which must outlive the loader. `for (const auto& batch : loader.epoch(e))`. One user thread.
/// Order, batches and positions are the same with any number of prefetch threads. A set that prefers_ascending is asked for the
/// samples of a batch (the global one: ranks have neighbouring parts of it) in ascending order of their indices, and they are
/// served so.
template <class Scalar = float> class Loader {
  static_assert(std::is_same_v<Scalar, float> || std::is_same_v<Scalar, double>,
                "a Loader stages samples as float or double; tokens come of a Loader<> too, with .tokens = true");

 public:
  /// Makes all staging memory. Throws ArgumentError for options that contradict each other, or leave an epoch without a step.
  Loader(DatasetView data, const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  const DatasetView& dataset() const { return data_; }
  std::int64_t steps() const { return steps_; }  ///< of an epoch, the same on every rank
  long batch() const { return batch_; }          ///< samples of a full step over all ranks
  long capacity() const { return capacity_; }    ///< the most samples that a batch of this rank has
  bool prefetching() const { return !threads_.empty(); }
  int prefetch_threads() const { return static_cast<int>(threads_.size()); }
  /// Seconds that the user's thread has spent on batches so far: staging, or waiting for the thread that does.
  double waited() const { return waited_; }

  /// The next batch that has not been served. After the last of an epoch: step 0 of the next.
  Position position() const { return position_; }
  /// The next `epoch(at.epoch)` begins at `at.step`; other epochs at 0. Throws ArgumentError for a step that is not there.
  void seek(Position at);

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
      Iterator(Loader* loader, std::int64_t epoch, std::int64_t step, std::int64_t end);
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

  /// The batches of epoch e, from its first step, or from where seek() said. Leaving the loop early is fine. An exception of
  /// the data set ends it, at the step at which seek(position()) begins another.
  Epoch epoch(std::int64_t e) &;
  /// Refused: the loader would be gone before its first batch is read.
  template <class None = void> Epoch epoch(std::int64_t) && {
    static_assert(
        detail::refused::by_this_name<None>,
        "the loader must outlive its epoch: give it a name, data::Loader<> loader{set, {...}}; for (const auto& batch : "
        "loader.epoch(0))");
  }

  /// What this rank serves in a step: for executors that stage parts of a batch themselves, in their own threads.
  Share share(std::int64_t step) const;
  /// The order of an epoch.
  Permutation order(std::int64_t e) const;

 private:
  struct Slot {
    Slot(const DatasetView& data, long capacity, long ascending, const LoaderOptions& options);
    HostArray<Scalar> x, targets;
    HostArray<std::int32_t> labels, tokens;
    HostArray<std::int64_t> indices;
    std::vector<std::int64_t> ascending;  // the indices of a global batch, where they are sorted
    Batch<Scalar> batch;
    std::int64_t staged = -1;  // the step of this epoch that it holds
  };

  plan::VirtualShards shards() const { return plan::virtual_shards(options_.shards, options_.ranks, options_.rank); }

  void check() const;
  /// Throws ArgumentError where a value of a batch is infinite or not a number.
  void check_finite(const Slot& slot) const;

  /// Fills a slot with this rank's part of a step.
  void stage(Slot& slot, std::int64_t epoch, std::int64_t step);
  /// The indices of its samples.
  void choose(Slot& slot, const Share& part, std::int64_t step) const;

  /// Points the loader, and its thread, at a step.
  void begin(std::int64_t epoch, std::int64_t step);

  const Batch<Scalar>& take(std::int64_t epoch, std::int64_t step);
  /// Throws ArgumentError where another loop has begun since, or a step before has failed.
  void check_turn(std::int64_t epoch, std::int64_t step) const;
  /// Stages a step, without the lock meanwhile; an exception becomes error_.
  void fill(std::unique_lock<std::mutex>& lock, std::int64_t step);
  void finish();
  Slot& slot_of(std::int64_t step) {
    return *slots_[static_cast<std::size_t>((shift_ + step) % static_cast<std::int64_t>(slots_.size()))];
  }

  int wanted_threads() const;
  void stop_threads();
  /// A prefetch thread: fills the next free slot, sleeps where there is none.
  void serve();

  DatasetView data_;
  LoaderOptions options_;
  std::vector<std::int64_t> sizes_;
  long batch_ = 0, capacity_ = 0;
  std::int64_t steps_ = 0;
  std::shared_ptr<std::int64_t> served_ = std::make_shared<std::int64_t>(0);  // batches asked for so far
  std::vector<std::unique_ptr<Slot>> slots_;
  Position position_{};
  std::optional<Position> pending_;
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable work_, ready_;
  Permutation order_{0};
  // Slots of prefetch threads: one in use, two for a thread, which is woken every other step, one more for each other thread.
  std::int64_t ahead_ = 0;
  std::int64_t epoch_ = 0, next_ = 0, taken_ = 0;  // next_: the step that is staged next
  std::int64_t shift_ = 0;                         // step s is in slot (shift_ + s)
  int filling_ = 0;                                // threads that stage
  bool active_ = false, stop_ = false;
  std::exception_ptr error_;  // of step failed_
  std::int64_t failed_ = 0;
  std::vector<std::thread> threads_;
};

#if SKEIN_COMPILED
extern template class Loader<float>;
extern template class Loader<double>;
#endif

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "loader.ipp"
#endif
