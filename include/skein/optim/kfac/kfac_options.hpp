// SPDX-License-Identifier: Apache-2.0
// What a user says of K-FAC. kfac.hpp has the state that goes with it.
#pragma once
#include <cmath>
#include <cstdint>
#include <string_view>

#include "../../plan/curvature_block.hpp"
#include "../transform/transform.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// How Kfac divides by its factors.
enum class KfacInverse {
  eigen,     ///< eigenvectors of both: the damping is added to the products of their eigenvalues
  cholesky,  ///< an inverse of each, with the damping added to its diagonal: less work
};
/// "eigen" or "cholesky".
constexpr std::string_view name_of(KfacInverse how) { return how == KfacInverse::eigen ? "eigen" : "cholesky"; }

/// Has the state of a preconditioner, of the network's layers (optim/kfac/kfac_state.hpp).
template <class Scalar> class KfacState;

/// The gradient of each layer that has Kronecker factors (Linear, also at each position; convolutions of one group, Rnn, Lstm and
/// Gru) becomes A^-1 g G^-1. A: the running mean of its inputs' second moment, a 1 for the bias among them; G: of its outputs'
/// gradients; both begin as the identity, unless factor_bias_correction. Layers without factors, and those with a frozen
/// parameter, keep their gradient.
struct Kfac {
  double damping = 0.003;
  int factor_every = 1, inverse_every = 10;  ///< steps from one update of the factors, of their inverses, to the next
  double factor_decay = 0.95;                ///< the share of a factor that an update keeps
  double kl_clip = 0.001;                    ///< scales the result down to lr sqrt(sum g . result) <= sqrt(kl_clip); 0: never
  KfacInverse inverse = KfacInverse::eigen;
  /// How many eigenvectors, those of the largest eigenvalues, stand for a factor of more than 4 inverse_rank rows where
  /// inverses are made by Cholesky; the mean of its other eigenvalues stands for the rest of it. Makes inverses and what
  /// divides by them cheaper, and what is kept and sent smaller. 0: whole inverses. After Puiu, "Randomized K-FACs",
  /// arXiv:2206.15397.
  int inverse_rank = 0;
  /// Damping of each factor by the ratio pi of their mean eigenvalues, pi sqrt(damping) and sqrt(damping) / pi; false: the
  /// damping as it is, which is kfac-pytorch's.
  bool pi_correction = false;
  /// Scales and shifts of BatchNorm, LayerNorm, GroupNorm and RmsNorm too: their gradient is divided by a block of 2 x 2 (1 x 1)
  /// a channel, the running mean of the second moments of each sample's own gradient, with the damping on its diagonal. Osawa et
  /// al., "Scalable and practical natural gradient for large-scale deep learning", arXiv:2002.06015. kfac-pytorch has none.
  bool unit_wise = false;
  /// The factors are the running means divided by 1 - factor_decay^updates, as Adam's moments are: the first update's factor is
  /// that batch's, and the identity is none of it. false: the identity's share falls by factor_decay in each update, which is
  /// kfac-pytorch's, and is as much damping as long as it lasts.
  bool factor_bias_correction = false;
  /// Ranks that exchange gradients add up what they have collected during backward, bucket by bucket; false: in one message after
  /// it.
  bool overlap = true;

  static constexpr Needs needs = Needs::curvature;
  template <class Scalar> using State = KfacState<Scalar>;

  void check() const {
    detail::demand(damping > 0, "Kfac", "damping", damping, "the damping must be positive");
    detail::demand_finite("Kfac", "damping", damping);
    detail::demand(factor_every >= 1, "Kfac", "factor_every", factor_every, "an interval is at least one step");
    detail::demand(inverse_every >= 1, "Kfac", "inverse_every", inverse_every, "an interval is at least one step");
    detail::demand_share("Kfac", "factor_decay", factor_decay);
    skein::detail::demand_value("Kfac", ".inverse", inverse, KfacInverse::cholesky, "eigen or cholesky");
    detail::demand(inverse_rank >= 0, "Kfac", "inverse_rank", inverse_rank, "a number of eigenvectors; 0 is whole inverses");
    detail::demand(inverse_rank == 0 || inverse == KfacInverse::cholesky, "Kfac", "inverse_rank", inverse_rank,
                   "it goes with .inverse = KfacInverse::cholesky; KfacInverse::eigen takes all eigenvectors");
    detail::demand(kl_clip >= 0, "Kfac", "kl_clip", kl_clip, "a limit is not negative; 0 is none");
  }
  void describe(NamedValues& to) const {
    to.of("Kfac").add(".damping", damping).add(".factor_every", factor_every).add(".inverse_every", inverse_every);
    to.add(".factor_decay", factor_decay).add(".kl_clip", kl_clip).add(".inverse", inverse);
    to.add(".pi_correction", pi_correction).add(".unit_wise", unit_wise).add(".overlap", overlap);
    to.add(".factor_bias_correction", factor_bias_correction).add(".inverse_rank", inverse_rank);
  }
  /// A number of what the inverses are: others of the same sizes cannot stand for them.
  std::uint64_t inverse_kind() const {
    return (inverse == KfacInverse::eigen ? 1u : 0u) + (pi_correction ? 2u : 0u) + 4u * static_cast<std::uint64_t>(inverse_rank);
  }
  plan::InverseForm inverse_form() const { return {inverse == KfacInverse::eigen, inverse_rank}; }
  /// Whether the step of this number, from 1, updates the factors, and their inverses.
  bool updates_factors(std::int64_t step) const { return (step - 1) % factor_every == 0; }
  /// The share of a factor that the update in the step of this number, from 1, keeps. How many there have been is known from the
  /// number, so that a checkpoint has no count; `since`: steps before those, in which its layer was frozen.
  double kept_share(std::int64_t step, std::int64_t since = 0) const {
    if (!factor_bias_correction) return factor_decay;
    const std::int64_t updates = (step - 1) / factor_every - (since + factor_every - 1) / factor_every;
    const double before = std::pow(factor_decay, static_cast<double>(updates > 0 ? updates : 0));
    return factor_decay * (1 - before) / (1 - factor_decay * before);
  }
  bool updates_inverses(std::int64_t step) const { return (step - 1) % inverse_every == 0; }
};

}  // namespace skein::inline SKEIN_ABI::optim
