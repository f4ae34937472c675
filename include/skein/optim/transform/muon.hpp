// SPDX-License-Identifier: Apache-2.0
// Muon, momentum orthogonalised by Newton-Schulz steps, as a transform: chain(Muon{}, Sgd{.lr = ...}). Jordan et al., "Muon: an
// optimizer for hidden layers in neural networks", 2024, https://kellerjordan.github.io/posts/muon; the scale that fits AdamW's
// rates: Liu et al., arXiv:2502.16982. Matrices are PyTorch's torch.optim.Muon (whose steps are in bfloat16, ours in the
// parameters' precision); vectors, which that refuses, take Adam's direction.
#pragma once
#include <algorithm>
#include <cmath>
#include <string_view>

#include "../../ops/matmul.hpp"
#include "../../tensor/reduce.hpp"
#include "adam_direction.hpp"
#include "transform.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// By what Muon multiplies an orthogonal matrix (inputs, outputs).
enum class MuonScale {
  rms,  ///< 0.2 sqrt(max(inputs, outputs)): elements as large as AdamW's, so that rates for AdamW fit. PyTorch's match_rms_adamw
  original,  ///< sqrt(max(1, outputs / inputs)), PyTorch's default
};
/// "rms" or "original".
constexpr std::string_view name_of(MuonScale scale) { return scale == MuonScale::rms ? "rms" : "original"; }

/// m: running mean of g. A matrix becomes U V^T of what momentum gives, by `steps` products; a convolution's filters are one
/// matrix (kernel * kernel * inputs, outputs). A vector becomes Adam's direction, of its second array of state. A call allocates
/// four matrices of the parameter's size or of the square of its shorter side, which it frees.
struct Muon {
  double momentum = 0.95;
  bool nesterov = true;
  int steps = 5;
  MuonScale scale = MuonScale::rms;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< of vectors

  static constexpr Needs needs = Needs::tensor;
  static constexpr int state_arrays() { return 2; }
  void check() const {
    detail::demand_share("Muon", "momentum", momentum);
    detail::demand(steps >= 1 && steps < 100, "Muon", "steps", steps, "from 1 to 99 steps, of which five are usual");
    skein::detail::demand_value("Muon", ".scale", scale, MuonScale::original, "rms or original");
    detail::demand_share("Muon", "beta1", beta1);
    detail::demand_share("Muon", "beta2", beta2);
    detail::demand_epsilon("Muon", epsilon);
  }
  void describe(NamedValues& to) const {
    to.of("Muon").add(".momentum", momentum).add(".nesterov", nesterov).add(".steps", steps);
    to.add(".scale", scale).add(".beta1", beta1).add(".beta2", beta2).add(".epsilon", epsilon);
  }
  template <class Scalar, class Device> void tensor(const TensorUpdate<Scalar, Device>& t) const {
    const long inputs = t.gradient.extent(0), outputs = t.gradient.extent(1);
    if (inputs <= 1 || outputs <= 1) return detail::adam_direction(t, beta1, beta2, epsilon);
    const auto keep = static_cast<Scalar>(momentum), fresh = static_cast<Scalar>(1 - momentum);
    const auto& m = t.state(0);
    m.assign(keep * m + fresh * t.gradient);
    if (nesterov) t.gradient.assign(fresh * t.gradient + keep * m);
    else t.gradient.assign(m);
    const double least = 1e-7, size = static_cast<double>(norm(t.gradient));
    t.gradient.assign(static_cast<Scalar>(1 / std::max(size, least)) * t.gradient);
    for (int k = 0; k < steps; ++k) newton_schulz(t.gradient);
    const double in = static_cast<double>(inputs), out = static_cast<double>(outputs);
    t.gradient.assign(
        static_cast<Scalar>(scale == MuonScale::rms ? 0.2 * std::sqrt(std::max(in, out)) : std::sqrt(std::max(1.0, out / in))) *
        t.gradient);
  }

 private:
  /// x = a x + (b s + c s^2) x with s the smaller one of x x^T and x^T x: pulls the singular values towards 1.
  template <class Scalar, class Device> static void newton_schulz(const TensorView<Scalar, 2, Device>& x) {
    const Scalar a(3.4445), b(-4.7750), c(2.0315);
    const bool wide = x.extent(0) <= x.extent(1);
    const auto s = wide ? mm(x, x.transpose()) : mm(x.transpose(), x);
    const auto s2 = mm(s, s);
    const auto f = eval(b * s + c * s2);
    const auto moved = wide ? mm(f, x) : mm(x, f);
    x.assign(a * x + moved);
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
