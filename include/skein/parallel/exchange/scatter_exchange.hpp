// SPDX-License-Identifier: Apache-2.0
// ScatterExchange: a bucket by reduce-scatter: each rank gets the sum of the part of it whose parameters the rank owns. Half the
// traffic of an all-reduce.
#pragma once
#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "../../plan/placement.hpp"
#include "all_reduce_exchange.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The exchange of Sharded<2>: afterwards the gradients of a rank's own part are the sums, the others' are what they were.
struct ScatterExchange {
  static constexpr std::string_view name = "reduce-scatter";

  template <class Comm, class Scalar, class Device> class On : public ExchangeOn<Comm, Scalar, Device> {
    using Base = ExchangeOn<Comm, Scalar, Device>;
    using Counts = std::span<const std::size_t>;
    using Request = typename Base::Request;

   public:
    static constexpr bool takes_sums = false;
    /// The parts are those of the replica's placement.
    On(Comm& comm, const Replica<Scalar, Device>& replica, const std::vector<plan::Range>& buckets)
        : Base(comm, replica, buckets), jobs_(buckets.size()) {
      for (std::size_t i = 0; i < jobs_.size(); ++i) {
        for (int r = 0; r < comm.size(); ++r) jobs_[i].counts.push_back(size_of(common(buckets[i], part(r))));
        jobs_[i].own = common(buckets[i], part(comm.rank()));
      }
    }

    void begin(std::size_t i) {
      if (this->bucket(i).size == 0) return;
      (void)jobs_[i].request.emplace(
          this->comm().start_reduce_scatter_v(this->bucket(i), Counts(jobs_[i].counts), this->gradients(jobs_[i].own), Sum{}));
    }
    bool poll(std::size_t i) {
      if (jobs_[i].request && !jobs_[i].request->poll()) return false;
      jobs_[i].request.reset();
      return true;
    }
    void wait(std::size_t i) {
      if (jobs_[i].request) jobs_[i].request->wait();
      jobs_[i].request.reset();
    }
    void drop() {
      for (Job& job : jobs_) job.request.reset();
    }

   private:
    struct Job {
      std::vector<std::size_t> counts;  // of each rank's piece
      plan::Range own{};
      std::optional<Request> request;
    };
    plan::Range part(int rank) const { return this->replica().placement.part(rank); }
    static std::size_t size_of(plan::Range r) { return static_cast<std::size_t>(r.end - r.begin); }
    /// Where they do not meet it is empty, and lies within a.
    static plan::Range common(plan::Range a, plan::Range b) {
      const long begin = std::clamp(b.begin, a.begin, a.end);
      return {begin, std::clamp(b.end, begin, a.end)};
    }

    std::vector<Job> jobs_;
  };
};

}  // namespace skein::inline SKEIN_ABI::parallel
