// SPDX-License-Identifier: Apache-2.0
// skein::compiled: the bodies of plan/.
#include <skein/plan/advise.ipp>
#include <skein/plan/buckets.ipp>
#include <skein/plan/level_fit.ipp>
#include <skein/plan/pipeline_program.ipp>
#include <skein/plan/schedule_svg.ipp>
#include <skein/plan/schedule_text.ipp>
#include <skein/plan/step_cost.ipp>
#include <skein/plan/timeline.ipp>
#include <skein/plan/virtual_shards.ipp>
