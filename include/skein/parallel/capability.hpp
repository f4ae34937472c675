// SPDX-License-Identifier: Apache-2.0
// What a policy state can do beyond the hooks that each has: a set of capabilities, which it declares. Nobody asks a type whether
// it happens to have a function: what is declared is checked (concepts.hpp), what is not declared is not called.
#pragma once
#include "../core/enum_set.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// One capability, and the functions that whoever declares it has. One that owns a part of the parameters has the optimizer's
/// state of them. It has sum_over_owners(std::span<double>), for a model on a GPU sum_over_owners_there(DeviceSpan<double,
/// Device>) too, and gather(own, whole), a call of all ranks: of Sharded's an array becomes whole on all ranks, as K-FAC wants it
/// of gradients within a step; of a ParameterServer's on rank 0, where files are written, which is enough where Kfac is refused.
enum class Capability : unsigned {
  synchronizes_gradients,  ///< synchronizes_gradients(), gradient_ready(), finish_gradients(): one of a Compose at most
  averages_weights,        ///< after_step() or epoch_ends(), and finish(), after which all ranks have one model
  lets_weights_drift,      ///< weights_agree(): another policy has made the ranks' weights one
  owns_part,               ///< sum_over_owners(), gather(), see above: each rank has the optimizer's state of a part
  reduces_statistics,      ///< reduce_statistics(): sums over the ranks within a step, for layers
  serves_updates,          ///< serves(), serve(), signals: ranks that keep the weights and do not train
  sums_shards,             ///< virtual_shards, set_partial_sums(): gradients of virtual shards
  shares_batches,          ///< batch_parts(), batch_part(), scores(): several ranks have one part of a batch together
  splits_model,            ///< these ranks have one model together, each its part: nothing to call
  communicates,            ///< comm(): ranks of a communicator; those of several policies in a Compose must nest
  keeps_state,             ///< saved_as(), serialize(): what is saved with the training
  shares_inverses,         ///< worker_grid(), column(), row(): ranks keep the inverses of some layers' curvature
};
inline constexpr unsigned capability_count = 12;

/// A set of them.
using Capabilities = EnumSet<Capability>;

}  // namespace skein::inline SKEIN_ABI::parallel
