// SPDX-License-Identifier: Apache-2.0
// The bodies of loader.hpp: of both scalars that there are in the library.
#pragma once
#include <limits>

#include "../core/clock.hpp"
#include "finite.hpp"
#include "loader.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

template <class Scalar> Loader<Scalar>::Loader(DatasetView data, const LoaderOptions& options)
    : data_(data), options_(options), sizes_(options.sizes.begin(), options.sizes.end()) {
  options_.sizes = {sizes_.data(), sizes_.size()};
  check();
  batch_ = BatchSize{options.batch, options.batch_per_rank}.global(options.ranks);
  const bool local = options_.partition == Partition::local;
  steps_ = local ? local_steps(options_.sizes, batch_, options_.last) : shared_steps(data_.size(), batch_, options_.last);
  const long most = static_cast<long>(std::min<std::int64_t>(batch_, data_.size()));  // samples of a batch
  if (steps_ == 0) detail::refuse_no_step(options_.name, data_.size(), options_.sizes, batch_, options_.last);
  // Rounded up: the parts of a smaller last batch may fall to other ranks than those of a full one.
  capacity_ = local             ? static_cast<long>(local_batch(batch_, options_.ranks, options_.rank))
              : options_.shards ? shards_capacity(most, shards())
                                : (most + options_.ranks - 1) / options_.ranks;
  capacity_ = std::clamp<long>(capacity_, 1, std::max<long>(static_cast<long>(data_.size()), 1));
  const int threads = wanted_threads(), count = (threads > 0 ? threads + 2 : 1) + options_.held;
  ahead_ = threads + 2;
  const long ascending = !data_.prefers_ascending() ? 0 : local ? capacity_ : most;
  slots_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    slots_.push_back(std::make_unique<Slot>(data_, capacity_, ascending, options_));
    slots_.back()->batch.served.last = served_;
  }
  threads_.reserve(static_cast<std::size_t>(threads));
  try {
    for (int i = 0; i < threads; ++i) threads_.push_back(std::thread([this] { serve(); }));
  } catch (const std::exception& e) {
    stop_threads();
    skein::detail::refuse_threads(options_.name, threads, threads_.size(), e.what(),
                                  "ask for fewer (.prefetch_threads), take Prefetch::off");
  }
}

template <class Scalar> Loader<Scalar>::~Loader() {
  stop_threads();
  *served_ = std::numeric_limits<std::int64_t>::max();  // no batch is there any more
}

template <class Scalar> int Loader<Scalar>::wanted_threads() const {
  if (options_.prefetch == Prefetch::off) return 0;
  if (options_.prefetch_threads > 0) return options_.prefetch_threads;  // asked for, wherever they run
  const int spare = available_cores() - options_.busy_threads;
  if (options_.prefetch == Prefetch::automatic && spare < 1) return 0;
  return data_.prefers_threads() ? std::clamp(spare, 1, 4) : 1;
}

template <class Scalar> void Loader<Scalar>::stop_threads() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

template <class Scalar> void Loader<Scalar>::seek(Position at) {
  if (at.epoch < 0 || at.step < 0 || at.step > steps_)
    throw ArgumentError(
        text("loader: step {} of epoch {} is not within {} steps an epoch: the position belongs to another data set, batch or "
             "number of ranks",
             at.step, at.epoch, steps_));
  position_ = at.step == steps_ && steps_ > 0 ? Position{at.epoch + 1, 0} : at;
  pending_ = position_;
}

template <class Scalar>
Loader<Scalar>::Epoch::Iterator::Iterator(Loader* loader, std::int64_t epoch, std::int64_t step, std::int64_t end)
    : loader_(loader), epoch_(epoch), step_(step), end_(end) {
  if (step >= end) return;
  loader_->begin(epoch, step);
  batch_ = &loader_->take(epoch, step);
}

template <class Scalar> typename Loader<Scalar>::Epoch Loader<Scalar>::epoch(std::int64_t e) & {
  const bool sought = pending_ && pending_->epoch == e;
  const std::int64_t first = sought ? pending_->step : 0;
  if (sought) pending_.reset();  // once; another epoch leaves it
  return Epoch(this, e, first);
}

template <class Scalar> Share Loader<Scalar>::share(std::int64_t step) const {
  if (options_.partition == Partition::local) return local_share(options_.sizes, batch_, options_.rank, step);
  if (options_.shards) return shared_share(data_.size(), batch_, shards(), step);
  return shared_share(data_.size(), batch_, options_.ranks, options_.rank, step);
}

template <class Scalar> Permutation Loader<Scalar>::order(std::int64_t e) const {
  if (!options_.shuffle) return Permutation(data_.size());
  const bool local = options_.partition == Partition::local;
  return Permutation(data_.size(), options_.seed, e, local ? 1 + static_cast<std::uint64_t>(options_.rank) : 0);
}

template <class Scalar>
Loader<Scalar>::Slot::Slot(const DatasetView& data, long capacity, long most, const LoaderOptions& options)
    : indices(static_cast<std::size_t>(capacity)), ascending(static_cast<std::size_t>(most)) {
  const auto of_rows = [&](long pitch) {
    if (pitch > std::numeric_limits<long>::max() / 16 / capacity) throw MemoryError(std::numeric_limits<std::size_t>::max());
    return static_cast<std::size_t>(capacity * pitch);
  };
  batch.sample = data.sample_extents();
  batch.pitch = options.tokens ? batch.sample.count() : sample_pitch(batch.sample);
  const std::size_t values = of_rows(batch.pitch);
  if (options.tokens) batch.tokens = (tokens = HostArray<std::int32_t>(values, options.memory)).data();
  else batch.x = (x = HostArray<Scalar>(values, options.memory)).data();
  batch.indices = indices.data();
  batch.set = options.name;
  batch.held = options.held;
  if (data.target().kind == TargetKind::label) {
    batch.labels_each = data.target().each;
    labels = HostArray<std::int32_t>(of_rows(batch.labels_each), options.memory);
    batch.labels = labels.data();
  } else if (data.target().kind == TargetKind::vector) {
    batch.target_length = data.target().count;
    batch.target_pitch = row_pitch(batch.target_length);
    targets = HostArray<Scalar>(of_rows(batch.target_pitch), options.memory);
    batch.targets = targets.data();
  }
}

template <class Scalar> void Loader<Scalar>::check() const {
  const LoaderOptions& o = options_;
  detail::demand_value("loader", ".partition", o.partition);
  detail::demand_value("loader", ".last", o.last);
  detail::demand_value("loader", ".prefetch", o.prefetch);
  if (!data_) throw ArgumentError(std::string("loader: ") + o.name + " is missing: give it a data set");
  if (!(o.tokens ? data_.gives_tokens() : data_.gives_numbers()))
    throw ArgumentError(o.tokens ? "loader: tokens are asked for, and the data set has none"
                                 : "loader: the data set has tokens: ask for them with .tokens = true");
  if (o.ranks < 1 || o.rank < 0 || o.rank >= o.ranks)
    throw ArgumentError(text("loader: rank {} is not one of {}", o.rank, o.ranks));
  constexpr int most = 1'000'000;  // of what has memory for a batch each
  if (o.held < 0 || o.held > most) throw ArgumentError(text("loader: .held is {} batches: give 0 to {}", o.held, most));
  if (o.prefetch_threads < 0 || o.prefetch_threads > most)
    throw ArgumentError(
        text("loader: .prefetch_threads is {}: give the number of threads that stage batches, or 0 for as many as suit the cores",
             o.prefetch_threads));
  if (o.shards != 0 && o.partition == Partition::local)
    throw ArgumentError(
        "loader: virtual shards are cut out of global batches: with Partition::local each rank has batches of its own; use "
        "Partition::shared");
  if (o.shards != 0 && o.shards < o.ranks)
    throw ArgumentError(
        text("loader: {} virtual shards are too few for {} ranks: each rank holds at least one", o.shards, o.ranks));
  if (o.partition == Partition::shared && data_.size() == 0)
    throw ArgumentError(std::string("loader: ") + o.name + " has no samples");
  if (o.partition == Partition::shared && !sizes_.empty())
    throw ArgumentError("loader: .sizes belongs to Partition::local; a shared data set has one size");
  if (o.partition == Partition::shared) return;
  if (static_cast<int>(sizes_.size()) != o.ranks)
    throw ArgumentError(text("loader: Partition::local needs .sizes of all {} ranks, {} are given", o.ranks, sizes_.size()));
  if (const std::int64_t size = sizes_[static_cast<std::size_t>(o.rank)]; size != data_.size())
    throw ArgumentError(text("loader: .sizes says that rank {} has {} samples, its data set has {}", o.rank, size, data_.size()));
}

template <class Scalar> void Loader<Scalar>::choose(Slot& slot, const Share& part, std::int64_t step) const {
  if (!data_.prefers_ascending()) return order_.fill(part.begin, part.count(), slot.indices.data());
  const bool local = options_.partition == Partition::local;
  const std::int64_t first = local ? part.begin : step * batch_;
  const long n = local ? part.count() : part.global_count;
  order_.fill(first, n, slot.ascending.data());
  std::sort(slot.ascending.begin(), slot.ascending.begin() + n);
  std::copy_n(slot.ascending.begin() + (part.begin - first), part.count(), slot.indices.data());
}

template <class Scalar> void Loader<Scalar>::stage(Slot& slot, std::int64_t epoch, std::int64_t step) {
  const Share part = share(step);
  const long n = part.count();
  choose(slot, part, step);
  const Indices indices(slot.indices.data(), static_cast<std::size_t>(n));
  Batch<Scalar>& b = slot.batch;
  std::int32_t* const labels = b.labels ? slot.labels.data() : nullptr;
  Scalar* const targets = b.targets ? slot.targets.data() : nullptr;
  if (n > 0 && options_.tokens) {
    data_.serve(indices, Destination<std::int32_t>{slot.tokens.data(), b.pitch, labels, nullptr, 0, epoch});
    if (targets) data_.targets(indices, targets, b.target_pitch);
  } else if (n > 0) {
    data_.serve(indices, Destination<Scalar>{slot.x.data(), b.pitch, labels, targets, b.target_pitch, epoch});
  }
  b.count = n;
  if (data_.non_finite() == NonFinite::refuse) check_finite(slot);
  b.global_count = part.global_count;
  b.first = part.first;
  b.epoch = epoch;
  b.step = step;
}

template <class Scalar> void Loader<Scalar>::check_finite(const Slot& slot) const {
  const Batch<Scalar>& b = slot.batch;
  const auto look = [&](const Scalar* from, long pitch, const char* what) {
    const std::span<const Scalar> values(from, static_cast<std::size_t>(b.count * pitch));  // gaps are zero
    if (!from || detail::finite(static_cast<double>(detail::greatest_magnitude(values)))) return;
    const long at = detail::first_not_finite(values);
    throw ArgumentError(
        text("{} {} of sample {} of {} is {}: correct it, or write it where a data set of your own leaves it out; if such values "
             "are intended, give the data set data::NonFinite non_finite() const, which returns data::NonFinite::keep",
             what, at % pitch, b.indices[at / pitch], options_.name,
             detail::not_finite_text(static_cast<double>(values[static_cast<std::size_t>(at)]))));
  };
  look(b.x, b.pitch, "value");
  look(b.targets, b.target_pitch, "target value");
}

template <class Scalar> void Loader<Scalar>::begin(std::int64_t epoch, std::int64_t step) {
  std::unique_lock lock(mutex_);
  active_ = false;
  ready_.wait(lock, [&] { return filling_ == 0; });
  order_ = order(epoch);
  epoch_ = epoch;
  shift_ = *served_ - step;  // the slots go round over epochs too: what is held stays held
  next_ = taken_ = step;
  for (const auto& slot : slots_) slot->staged = -1;
  error_ = nullptr;
  failed_ = steps_;
  active_ = true;
  lock.unlock();
  if (prefetching()) work_.notify_all();
}

template <class Scalar> const Batch<Scalar>& Loader<Scalar>::take(std::int64_t epoch, std::int64_t step) {
  const double start = seconds_now();
  Slot& slot = slot_of(step);
  std::unique_lock lock(mutex_);
  check_turn(epoch, step);
  const std::int64_t number = ++*served_;  // of one that fails too: its slot is no longer what was held there
  if (!prefetching()) {
    fill(lock, step);
  } else {
    taken_ = step;  // what came before is free again
    if (next_ - taken_ < ahead_ - 1) {
      lock.unlock();
      work_.notify_all();
      lock.lock();
    }
    ready_.wait(lock, [&] { return slot.staged == step || failed_ <= step; });
  }
  if (slot.staged != step) {
    active_ = false;
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
  waited_ += seconds_now() - start;
  slot.batch.served.number = number;
  position_ = step + 1 < steps_ ? Position{epoch, step + 1} : Position{epoch + 1, 0};
  return slot.batch;
}

template <class Scalar> void Loader<Scalar>::check_turn(std::int64_t epoch, std::int64_t step) const {
  if (active_ && epoch_ == epoch && taken_ <= step) return;
  if (!active_ && epoch_ == epoch && failed_ < step)
    throw ArgumentError(text(
        "loader: step {} of epoch {} has failed: begin another loop there, by seek(position()), or behind it", failed_, epoch));
  throw ArgumentError("loader: two loops over epochs of one loader are mixed: finish one before the next begins");
}

template <class Scalar> void Loader<Scalar>::fill(std::unique_lock<std::mutex>& lock, std::int64_t step) {
  Slot& slot = slot_of(step);
  std::exception_ptr error;
  lock.unlock();
  try {
    stage(slot, epoch_, step);
  } catch (...) { error = std::current_exception(); }
  lock.lock();
  if (!error) slot.staged = step;
  else if (step < failed_) error_ = error, failed_ = step;
}

template <class Scalar> void Loader<Scalar>::finish() {
  std::lock_guard lock(mutex_);
  active_ = false;
}

template <class Scalar> void Loader<Scalar>::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stop_ || (active_ && next_ < failed_ && next_ - taken_ < ahead_); });
    if (stop_) return;
    ++filling_, fill(lock, next_++), --filling_;
    ready_.notify_one();
  }
}

#if SKEIN_COMPILED
template class Loader<float>;
template class Loader<double>;
#endif

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
