#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiment 14: 1 to 4,096 ranks, simulated, beside what threads of this machine give. Takes --quick and --json FILE; anything else goes to the
# program.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/support/experiment.sh
experiment_begin 14_scaling_simulated "$@"
[ $quick -eq 1 ] && rest=(--rounds 20 --seeds 2 --epochs 10 "${rest[@]}")
experiment_draws build/scaling
"$program" "${svg_flags[@]}" "${json_flags[@]}" "${rest[@]}"
