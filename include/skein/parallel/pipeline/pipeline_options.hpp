// SPDX-License-Identifier: Apache-2.0
// What a user sets for a pipeline, and the table that this chooses.
#pragma once
#include <functional>
#include <vector>

#include "../../plan/schedule_check.hpp"
#include "tied_parameters.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Which table of plan/pipeline_schedule.hpp.
enum class PipelineSchedule { unpipelined, gpipe, one_f_one_b, interleaved, zero_bubble, pipedream };

/// A pipeline's schedule, its micro-batches, and how often it is there.
struct PipelineOptions {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int micro_batches = 4;      ///< a batch is cut into at most so many, of equal size but for the last: 9 samples, given 8, are 5
  long micro_batch = 0;       ///< or: samples of one; then a batch has as many as it takes
  int replicas = 1;           ///< pipelines beside each other, each with a part of the batch (pipeline x data)
  bool vertical_sync = true;  ///< PipeDream: a micro-batch reads the same version of the weights in every stage
  int devices = 0;            ///< world of one rank: the schedule's ranks, all driven by this thread; 0: one a stage
  std::vector<TiedParameters> tied{};
  /// Over SimComm, or Delayed: each task of a stage takes so long there.
  plan::StageLengths lengths{};
  /// A table of one's own instead of .schedule; the same on all ranks, which compare it where a batch has so many micro-batches
  /// for the first time. Its .synchronous does not depend on their number: pipelines beside each other compare it once.
  std::function<plan::Schedule(int ranks, int stages, int micro_batches)> table{};
};

/// The table of the options. Throws ArgumentError where ranks and stages do not go together.
inline plan::Schedule pipeline_schedule(const PipelineOptions& o, int ranks, int stages, int micros) {
  if (o.table) return o.table(ranks, stages, micros);
  if (o.schedule == PipelineSchedule::interleaved) return plan::interleaved(ranks, stages / ranks, micros);
  switch (o.schedule) {
    case PipelineSchedule::unpipelined:
      return plan::unpipelined(ranks, micros);
    case PipelineSchedule::gpipe:
      return plan::gpipe(ranks, micros);
    case PipelineSchedule::zero_bubble:
      return plan::zero_bubble(ranks, micros);
    case PipelineSchedule::pipedream:
      return plan::pipedream(ranks, micros);
    default:
      return plan::one_f_one_b(ranks, micros);
  }
}

}  // namespace skein::inline SKEIN_ABI::parallel
