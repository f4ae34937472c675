// SPDX-License-Identifier: Apache-2.0
// What a checkpoint has of Kfac.
#pragma once
#include <cstdint>
#include <vector>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// What a file has of a KfacState: with that a training goes on with the same bits, on any number of ranks. In the order of the
/// layers.
template <class Scalar> struct KfacSaved {
  std::vector<Scalar> factors, inverses, eigenvalues;
  std::uint64_t kind = 0;  ///< Kfac::inverse_kind(); a section of its own, which older files do not have
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & factors & inverses & eigenvalues); }
  bool same_sizes(const KfacSaved& other) const {
    return factors.size() == other.factors.size() && inverses.size() == other.inverses.size() &&
           eigenvalues.size() == other.eigenvalues.size();
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
