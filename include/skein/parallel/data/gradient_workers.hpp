// SPDX-License-Identifier: Apache-2.0
// GradientWorkers<Share>: how many ranks keep the inverses of a layer's curvature (Kfac) and precondition its gradient. Fewer
// gradient workers need less memory and send no, or fewer, inverses; in return preconditioned gradients travel in every step.
// Pauloski et al., "KAISA", SC 2021, arXiv:2107.01739: COMM-OPT, HYBRID-OPT and MEM-OPT.
#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <type_traits>

#include "../../comm/concepts.hpp"
#include "../../plan/curvature_shares.hpp"
#include "../comm_policy_state.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Every rank is a gradient worker of every layer, as without the option: inverses are sent to all, gradients to nobody
/// (COMM-OPT).
struct EveryRank {
  static constexpr plan::WorkerGrid grid(int ranks) { return {ranks, ranks}; }
  static std::string described() { return "EveryRank"; }
};
/// Each layer has one gradient worker: no inverse is sent, and each is in memory once (MEM-OPT).
struct OneRank {
  static constexpr plan::WorkerGrid grid(int ranks) { return {ranks, 1}; }
  static std::string described() { return "OneRank"; }
};
/// Numerator / Denominator of the ranks, rounded down to a number that divides them, and at least one (HYBRID-OPT).
template <int Numerator, int Denominator> struct Fraction {
  static_assert(Numerator > 0 && Denominator >= Numerator, "Fraction<N, D> of the ranks: 0 < N <= D, as in Fraction<1, 2>");
  static constexpr plan::WorkerGrid grid(int ranks) { return plan::worker_grid(ranks, Numerator, Denominator); }
  static std::string described() { return text("Fraction<{}, {}>", Numerator, Denominator); }
};

namespace detail {
template <class Comm> inline constexpr bool splits = comm::can<Comm, comm::Capability::splits>;
}  // namespace detail

/// An option of DataParallel for chains with Kfac: GradientWorkers<EveryRank>, <Fraction<1, 2>> or <OneRank>. Which layers a rank
/// works on is a function of their shapes and the number of ranks (plan/curvature_shares.hpp). The weights are the same for all
/// of them, up to rounding.
template <class Share> struct GradientWorkers : OptionBase {
  static_assert(
      requires(int ranks) {
        { Share::grid(ranks) } -> std::same_as<plan::WorkerGrid>;
        { Share::described() } -> std::convertible_to<std::string>;
      },
      "GradientWorkers<Share>: a share has static grid(ranks), a plan::WorkerGrid, and described(), its name in messages");
  static constexpr OptionKind kind = OptionKind::curvature;
  static std::string described() { return text("GradientWorkers<{}>", Share::described()); }

  template <class Inner> class Around : public Inner {
    using Comm = typename Inner::communicator;
    static_assert(detail::splits<Comm>,
                  "GradientWorkers needs communicators of some of the ranks, and this one has no split(): take MpiComm, "
                  "GlooComm, ThreadComm or SimComm as they are");

   public:
    static constexpr Capabilities capabilities = Inner::capabilities | Capabilities{Capability::shares_inverses};
    using Inner::Inner;

    void start() {
      Inner::start();
      const plan::WorkerGrid grid = worker_grid();
      column_ = std::make_unique<Comm>(this->comm().split(grid.column(this->rank()), this->rank()));
      row_ = std::make_unique<Comm>(this->comm().split(grid.row(this->rank()), this->rank()));
    }
    plan::WorkerGrid worker_grid() const { return Share::grid(this->ranks()); }
    /// The ranks that work on the same layers; and those that get each other's gradients.
    Comm& column() { return *column_; }
    Comm& row() { return *row_; }

   private:
    std::unique_ptr<Comm> column_, row_;
  };
};

}  // namespace skein::inline SKEIN_ABI::parallel
