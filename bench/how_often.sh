#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiment 09: gradients every 1, 2, 4, 10 epochs or never, models every 200: over 4 threads, a slow network among them, and over 4 processes. Goal:
# the best row within 1.4 of the floor of its steps. Takes --quick (a tenth of the samples, one seed) and --json FILE; the rest goes to the program.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/support/experiment.sh
. scripts/ranks.sh
experiment_begin 09_how_often_to_synchronize "$@"
network=()                                                    # of threads alone: processes have one of their own
[ $quick -eq 1 ] && network=(--slow-epochs 5) && rest=(--samples 8000 --batch 100 --target 1 --grain 100 --seeds 1 "${rest[@]}")
experiment_draws build/how_often
"$program" --ranks 4 "${svg_flags[@]}" "${network[@]}" "${json_flags[@]}" "${rest[@]}"
[ $quick -eq 1 ] || rest=(--seeds 1 "${rest[@]}")
ranks=$(experiment_value ranks 4)
experiment_without ranks slow-epochs latency bandwidth           # of threads
experiment_draws build/how_often _processes
ranks_start "$ranks"
echo "-- over $ranks processes, $ranks_placing"
"${start[@]}" "$program" --processes "${svg_flags[@]}" "${left[@]}"
