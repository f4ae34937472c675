// SPDX-License-Identifier: Apache-2.0
// EncodedExchange: what Compress and Algorithm choose: gradients of a bucket are encoded, summed over the ranks by one algorithm,
// and decoded. The sums of the batch behind the parameters are exact: they never pass a compressor.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../comm/tags.hpp"
#include "exchange_job.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
template <class Device> consteval bool assert_on_host() {
  static_assert(std::same_as<Device, Cpu>,
                "Compress and Algorithm work on values of the host: for a model on a GPU take DataParallel without them");
  return true;
}
template <class Compressor, class Chosen> consteval bool assert_encoded() {
  static_assert(Compressor::linear || !by_table<Chosen>,
                "Algorithm names an all-reduce, and this compressor is not linear: what it writes is gathered, not added. "
                "Leave Algorithm out, or take a linear compressor");
  static_assert(Compressor::linear || by_table<Chosen> || Compressor::rounds == 1,
                "a compressor of several rounds needs sums between them: it must be linear");
  return true;
}
}  // namespace detail

/// Each bucket is encoded by the compressor, summed over the ranks by the algorithm, and decoded. A world of one encodes nothing.
template <class Compressor, class Chosen> struct EncodedExchange {
  static_assert(detail::assert_encoded<Compressor, Chosen>());
  static constexpr std::string_view name = "Compress, Algorithm";
  using compressor = Compressor;
  using algorithm = Chosen;

  template <class Comm, class Scalar, class Device> class On : public ExchangeOn<Comm, Scalar, Device> {
    using Base = ExchangeOn<Comm, Scalar, Device>;
    static_assert(detail::assert_on_host<Device>());
    using Job = detail::ExchangeJob<Comm, Scalar, Compressor, Chosen>;
    static constexpr bool compresses = !std::same_as<Compressor, detail::Uncompressed>;

   public:
    static constexpr bool takes_sums = !compresses;
    static constexpr bool keeps_state = Job::keeps_residual || Job::remembers;
    using Base::Base;

    void start() {
      if constexpr (detail::by_table<Chosen>) {
        algorithm_.check(this->comm().size());
        algorithm_.prepare(this->comm());
      }
      if (!jobs_.empty()) return;  // a training that was loaded starts once more
      make_jobs();
      if (jobs_.size() > most_buckets)
        throw ArgumentError(
            skein::text("DataParallel: Compress and Algorithm take up to {} buckets, there are {}: raise bucket_bytes",
                        most_buckets, jobs_.size()));
      this->comm().assert_same("the exchange of DataParallel (Compress, Algorithm)", text());
    }

    void begin(std::size_t i) {
      if (compresses && i == 0) counts_ += sums();
      jobs_[i].begin(call(), tag(i, 0));
    }
    bool poll(std::size_t i) { return jobs_[i].poll(call()); }
    void backward_ended() {
      if constexpr (Compressor::rounds > 1)  // not earlier: all ranks begin their calls in one order
        for (int round = 1; round < Compressor::rounds; ++round)
          for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].next_round(call(), tag(i, round));
    }
    void wait(std::size_t i) { jobs_[i].wait(call()); }
    void drop() {
      for (Job& job : jobs_) job.drop();
    }

    /// What this rank gives to the communicator in a step that exchanges, by the plan: closed forms over the buckets.
    comm::Counts planned() const {
      comm::Counts all;
      for (const Job& job : jobs_) all += job.planned(algorithm_, this->comm().size(), this->comm().rank());
      if (compresses && !jobs_.empty()) all += sums();
      return all;
    }
    /// What it has given so far, for gradients.
    const comm::Counts& counts() const { return counts_; }
    /// "bf16 by ring: 12 buckets, 5321 bytes".
    std::string text() const {
      std::size_t bytes = 0;
      for (const Job& job : jobs_) bytes += job.wire_bytes();
      return skein::text("{} by {}: {} buckets, {} bytes", Compressor::name, Chosen::name, jobs_.size(), bytes);
    }
    const Chosen& chosen() const { return algorithm_; }

    /// What error feedback has kept on this rank, of all values in the order of the parameters.
    std::vector<float> residual() const requires Job::keeps_residual {
      std::vector<float> all;
      for (std::size_t i = jobs_.size(); i-- > 0;)
        jobs_[i].bucket().append_residual(all);  // the first bucket is the last layers'
      return all;
    }
    /// Before a training is saved, on all ranks: rank 0 gets what the others keep, a piece after the other, since each piece goes
    /// to all.
    void before_save() {
      if constexpr (Job::keeps_residual) {
        constexpr std::size_t most = 16 * 1024;
        const std::vector<float> own = residual();
        const std::size_t n = own.size(), ranks = static_cast<std::size_t>(this->comm().size());
        const bool writes = this->comm().rank() == 0;
        if (writes) kept_.residuals.resize(n * ranks);
        std::vector<float> piece;
        for (std::size_t at = 0; at < n; at += most) {
          const std::size_t count = std::min(most, n - at);
          piece.resize(count * ranks);
          this->comm().all_gather(std::span(own).subspan(at, count), piece);
          for (std::size_t r = 0; writes && r < ranks; ++r)
            std::copy_n(piece.data() + r * count, count, kept_.residuals.data() + r * n + at);
        }
      }
    }
    /// What serialize() saves is of this compressor alone. The word in files is the one that it has always been.
    static std::string saved_as() { return "Wire<" + std::string(Compressor::name) + ">"; }
    /// Nothing is left out, and compressors have learnt nothing.
    void forget() {
      if (jobs_.empty()) return;
      jobs_.clear();
      make_jobs();
    }
    /// Residuals of all ranks and what compressors have learnt, in the order of the parameters, whatever the buckets; in files of
    /// version 0 in that of their buckets. A training that goes on with another number of ranks gives each its part of the
    /// residuals' sum. Where each rank of a group writes a state of its own (a Compose), all but the first write their own
    /// residual.
    static constexpr unsigned archive_version = 1;
    template <class Archive> void serialize(Archive& archive, unsigned version) {
      if constexpr (Archive::is_saving::value) {
        const bool writes_all = this->comm().rank() == 0;
        kept_.ranks = writes_all ? this->comm().size() : own_alone;
        if constexpr (Job::keeps_residual)
          if (!writes_all) kept_.residuals = residual();
        kept_.memory.clear();
        if constexpr (Job::remembers)
          for (std::size_t i = jobs_.size(); i-- > 0;) jobs_[i].bucket().append_memory(kept_.memory);
      }
      (archive & kept_.ranks & kept_.residuals & kept_.memory);
      if constexpr (Archive::is_loading::value) restore(version == 0);
      kept_ = {};
    }

   private:
    static constexpr std::size_t most_buckets = comm::tags::most_buckets;
    static int tag(std::size_t bucket, int round) { return comm::tags::buckets + 2 * static_cast<int>(bucket) + round % 2; }
    detail::ExchangeCall<Comm, Scalar, Chosen> call() {
      return {this->comm(), this->replica().gradients.data, algorithm_, counts_};
    }
    /// The sums of the batch, which travel beside what is encoded.
    comm::Counts sums() const {
      const auto& replica = this->replica();
      const std::size_t n = replica.gradients.size - static_cast<std::size_t>(replica.stored);
      return {.collectives = 1, .payload = static_cast<long>(n * sizeof(Scalar))};
    }

    void make_jobs() {
      const auto& replica = this->replica();
      for (std::size_t i = 0; i < this->buckets(); ++i)
        jobs_.emplace_back(replica.entries, this->range(i), replica.stored, this->comm().size());
    }
    /// This rank's residual, of n values, by a file.
    std::vector<float> own_residual(std::size_t n) const {
      if (kept_.ranks == own_alone) return kept_.residuals;
      std::vector<float> own(n, 0.0f);
      const bool same = kept_.ranks == this->comm().size();
      for (std::size_t r = 0; r * n < kept_.residuals.size(); ++r)
        for (std::size_t i = 0; i < n; ++i)
          if (!same || static_cast<int>(r) == this->comm().rank())
            own[i] += kept_.residuals[r * n + i] / (same ? 1.0f : static_cast<float>(this->comm().size()));
      return own;
    }
    void restore(bool by_buckets) {
      forget();
      const auto job = [&](std::size_t i) -> Job& { return jobs_[by_buckets ? i : jobs_.size() - 1 - i]; };
      if constexpr (Job::keeps_residual) {
        const std::size_t n = residual().size(), ranks = static_cast<std::size_t>(std::max(1, kept_.ranks));
        if (jobs_.empty() || kept_.residuals.size() != n * ranks) return;  // of a training without ranks, or by another wire
        const std::vector<float> own = own_residual(n);
        std::size_t at = 0;
        for (std::size_t i = 0; i < jobs_.size(); ++i) {
          const std::size_t count = job(i).bucket().values();
          job(i).bucket().set_residual(std::span<const float>(own).subspan(at, count));
          at += count;
        }
      }
      if constexpr (Job::remembers) {
        std::size_t n = 0, at = 0;
        for (const Job& j : jobs_) n += j.bucket().memory_size();
        if (kept_.memory.size() != n) return;
        for (std::size_t i = 0; i < jobs_.size(); ++i)
          at += job(i).bucket().set_memory(std::span<const float>(kept_.memory).subspan(at));
      }
    }

    static constexpr int own_alone = -1;
    struct Kept {
      int ranks = 0;  // whose residuals these are: of so many, or own_alone
      std::vector<float> residuals, memory;
    };
    Chosen algorithm_{};
    std::vector<Job> jobs_;
    comm::Counts counts_{};
    Kept kept_{};
  };
};

}  // namespace skein::inline SKEIN_ABI::parallel
