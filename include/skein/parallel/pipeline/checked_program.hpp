// SPDX-License-Identifier: Apache-2.0
// From the table of a Pipeline to the lines that a process of it runs: the table, which may be the user's, is checked on the way.
#pragma once
#include <string>

#include "../../core/error.hpp"
#include "../../plan/pipeline_program.hpp"
#include "pipeline_team.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// The lines of the team's ranks for so many stages and micro-batches. Throws ArgumentError where the table is of others, where
/// its stages step one by one though parameters are tied, or where messages would need more than `most_tags` tags.
inline plan::PipelineProgram checked_program(const PipelineTeam& team, const plan::Schedule& schedule, int stages, int micros,
                                             bool forward_only, long most_tags) {
  if (schedule.stages != stages || schedule.ranks != team.ranks || schedule.micros != micros)
    throw ArgumentError(text("Pipeline: .table gave {} stages over {} ranks and {} micro-batches; it was asked for {}, {} and {}",
                             schedule.stages, schedule.ranks, schedule.micros, stages, team.ranks, micros));
  if (!schedule.synchronous && !team.options.tied.empty())
    throw ArgumentError(
        "Pipeline: .tied wants one update a step, of all stages: the stages of .table's schedule, which is not .synchronous, "
        "step one by one");
  if (2L * stages * micros > most_tags)
    throw ArgumentError(text("Pipeline: {} micro-batches are too many for {} stages", micros, stages));
  plan::PipelineProgramOptions o;
  o.first_rank = team.first_rank;
  o.last_rank = team.last_rank;
  o.forward_only = forward_only;
  o.vertical_sync = team.options.vertical_sync;
  return plan::pipeline_program(schedule, o);
}

}  // namespace skein::inline SKEIN_ABI::parallel::detail
