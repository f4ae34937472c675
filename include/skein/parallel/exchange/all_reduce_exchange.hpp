// SPDX-License-Identifier: Apache-2.0
// AllReduceExchange: each bucket by the communicator's all-reduce, as it is: what DataParallel takes unless an option says
// otherwise.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "exchange.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
/// Gradients travel as they are.
struct Uncompressed {
  static constexpr std::string_view name = "uncompressed";
  static constexpr bool linear = true;
  static constexpr int rounds = 1;
};
/// The communicator's all-reduce: what is used where no Algorithm is named.
struct OwnAllReduce {
  static constexpr std::string_view name = "all_reduce";
};
}  // namespace detail

/// The exchange of DataParallel without options. One message of the communicator a bucket; a device may capture it.
struct AllReduceExchange {
  static constexpr std::string_view name = "all-reduce";
  using compressor = detail::Uncompressed;
  using algorithm = detail::OwnAllReduce;

  template <class Comm, class Scalar, class Device> class On : public ExchangeOn<Comm, Scalar, Device> {
    using Base = ExchangeOn<Comm, Scalar, Device>;
    using Request = typename Base::Request;

   public:
    static constexpr bool capturable = true;
    On(Comm& comm, const Replica<Scalar, Device>& replica, const std::vector<plan::Range>& buckets)
        : Base(comm, replica, buckets), requests_(buckets.size()) {}

    void begin(std::size_t i) { (void)requests_[i].emplace(this->comm().start_all_reduce(this->bucket(i), Sum{})); }
    bool poll(std::size_t i) {
      if (!requests_[i]->poll()) return false;
      requests_[i].reset();
      return true;
    }
    void wait(std::size_t i) {
      requests_[i]->wait();
      requests_[i].reset();
    }
    void drop() {
      for (auto& r : requests_) r.reset();
    }

   private:
    std::vector<std::optional<Request>> requests_;
  };
};

}  // namespace skein::inline SKEIN_ABI::parallel
