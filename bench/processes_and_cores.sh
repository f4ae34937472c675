#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiment 10: a training on 1, 2, 4 and 8 processes of the same cores, in turns. Goals: not slower than 1.05 of one process where each has a
# core, 1.25 and 1.5 where two and four share one (the tutorial: 3.4). Takes --quick and --json FILE; anything else goes to the program.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/support/experiment.sh
. scripts/ranks.sh                                              # may run as root, and says so to mpirun
experiment_begin 10_processes_and_cores "$@"
[ $quick -eq 1 ] && rest=(--rounds 10 "${rest[@]}")
experiment_draws build/processes_and_cores
mpirun --oversubscribe --bind-to none -n 8 "$program" "${svg_flags[@]}" "${json_flags[@]}" "${rest[@]}"
