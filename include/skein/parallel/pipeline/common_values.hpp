// SPDX-License-Identifier: Apache-2.0
// What must be the same on all ranks of a pipeline, by names: they compare it before they begin.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "../../core/named_values.hpp"
#include "../../core/text.hpp"
#include "../../nn/precision.hpp"
#include "../../plan/placement.hpp"
#include "pipeline_options.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// The model, where it is cut into stages, and the options, without the table: that is compared for each number of micro-batches.
template <class Model> NamedValues common_values(const PipelineOptions& o) {
  constexpr std::string_view schedules[] = {"unpipelined", "gpipe", "one_f_one_b", "interleaved", "zero_bubble", "pipedream"};
  NamedValues values;
  values.add_hash("the model (network, input shape)", &Model::fingerprint, sizeof Model::fingerprint);
  values.add("the bytes of its scalar", sizeof(typename Model::Scalar));
  values.add("the type of its products", skein::detail::scalar_name<typename Model::precision::compute>());
  TextList cuts, tied;
  const plan::Placement placement = Model::placement();
  for (int s = 0; s < placement.owners(); ++s) cuts.add(placement.part(s).end);
  for (const TiedParameters& t : o.tied) tied.add(t.first + " and " + t.second);
  values.add("the ends of its stages in the parameters", cuts.text()).of("Pipeline");
  values.add(".schedule", schedules[static_cast<std::size_t>(o.schedule)]).add(".micro_batches", o.micro_batches);
  values.add(".micro_batch", o.micro_batch).add(".replicas", o.replicas).add(".vertical_sync", o.vertical_sync);
  return values.add(".tied", tied.text()).add(".table", o.table ? "given" : "not given");
}

}  // namespace skein::inline SKEIN_ABI::parallel::detail
