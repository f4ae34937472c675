// SPDX-License-Identifier: Apache-2.0
// What an experiment measured, as bench/support/report.hpp says it: a line for people, a verdict on the goal, and with --json
// FILE an object a line for `scripts/bench`. Rank 0 makes one. Simulated figures say so: Line.note begins with "simulated".
#pragma once
#include "../../../bench/support/report.hpp"
#include "table.hpp"

namespace experiments {

using bench::Goal;              // {bound, of_floor, at_least}
using bench::Interval;          // {median, low, high}; bench::bootstrap(ratios) makes one
using bench::Line;              // .metric, .ours, .peer, .peer_name, .unit, .ratio, .floor, .must, .hope, .note
using Results = bench::Report;  // Results results("how_often", {.json = o.json}); results.add({...}); return results.finish();

}  // namespace experiments
