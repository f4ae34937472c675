#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiment 13: what a slow worker does to each policy, over 4 threads that train and over 4 processes; servers against a ring for up to 64
# workers on a simulated network. Takes --quick (one seed, a second a training, over threads) and --json FILE; anything else goes to the program.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/support/experiment.sh
. scripts/ranks.sh
experiment_begin 13_parameter_server "$@"
[ $quick -eq 1 ] && rest=(--seconds 1 --seeds 1 --simulate 16 --target 0.5 "${rest[@]}")
experiment_draws build/parameter_server
"$program" --workers 4 "${svg_flags[@]}" "${json_flags[@]}" "${rest[@]}"
[ $quick -eq 1 ] && exit 0
ranks=$(($(experiment_value workers 4) + 2))                     # two of them serve
experiment_without simulate compute latency bandwidth            # what is simulated is the same over processes
experiment_draws build/parameter_server _processes
ranks_start $ranks
echo "-- over $ranks processes, $ranks_placing"
"${start[@]}" "$program" --processes --workers 4 --seeds 1 "${svg_flags[@]}" "${left[@]}" --simulate 0
