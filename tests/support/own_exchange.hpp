// SPDX-License-Identifier: Apache-2.0
// An exchange of gradients of a user's own, as docs/guide/parallel.md has it: run on threads, processes and the pretend runtime.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/exchange_by.hpp>

namespace sk = skein;

// [quote own_exchange]
/// The ranks share out the adding of a bucket, and gather what each has added (Rabenseifner's all-reduce).
struct InTwoHalves {
  static constexpr std::string_view name = "reduce-scatter, all-gather";

  template <class Comm, class Scalar, class Device> class On : public sk::parallel::ExchangeOn<Comm, Scalar, Device> {
    using Base = sk::parallel::ExchangeOn<Comm, Scalar, Device>;
    struct Half {
      std::vector<std::size_t> counts;  // of each rank's piece
      std::optional<typename Base::Request> adding;
    };
    std::vector<Half> halves_;
    auto own(std::size_t i) { return this->gradients(this->piece(i, this->comm().rank())); }
    auto counts(std::size_t i) { return std::span<const std::size_t>(halves_[i].counts); }

   public:
    using Base::Base;
    void start() {  // memory is made before the first step
      halves_ = std::vector<Half>(this->buckets());
      for (std::size_t i = 0; i < halves_.size(); ++i)
        for (int r = 0; r < this->comm().size(); ++r) {
          const sk::plan::Range piece = this->piece(i, r);
          halves_[i].counts.push_back(static_cast<std::size_t>(piece.end - piece.begin));
        }
    }
    void begin(std::size_t i) {  // the bucket's gradients are final
      halves_[i].adding.emplace(this->comm().start_reduce_scatter_v(this->bucket(i), counts(i), own(i), sk::Sum{}));
    }
    bool poll(std::size_t i) {  // makes progress; the second half waits for wait(), where all ranks are at the same bucket
      (void)halves_[i].adding->poll();
      return false;
    }
    void wait(std::size_t i) {
      halves_[i].adding->wait();
      this->comm().all_gather_v(own(i), counts(i), this->bucket(i));
    }
  };
};
// [end]
