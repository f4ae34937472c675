#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiment 12: an MLP and LeNet in 2 and 4 stages on two ranks, threads and then processes, every schedule in turns with one core that does it all. Goals: the MLP in 2
# stages under 1F1B >= 1.55 times one core (the bubble of 8 micro-batches allows 1.78), its schedules within 8 % of their tables. Draws
# build/pipeline_*.svg. Takes --quick and --json FILE; anything else goes to the program.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/support/experiment.sh
. scripts/ranks.sh                                              # may run as root, and says so to mpirun
experiment_begin 12_pipeline "$@"
# Tasks that sleep: four ranks on two cores, and nothing but the table decides how long a step takes.
experiment_without threads-as-ranks stages network epochs
experiment_draws build/pipeline _dilated
"$program" --threads-as-ranks 4 --stages 4 --network mlp --batch 64 --dilate 5 --rounds 4 --steps 1 "${svg_flags[@]}" "${json_flags[@]}" "${left[@]}"
[ $quick -eq 1 ] && rest=(--rounds 15 "${rest[@]}")
experiment_draws build/pipeline _threads
"$program" --threads-as-ranks 2 "${svg_flags[@]}" "${json_flags[@]}" "${rest[@]}"
training=(--samples 60000)
case ,$(experiment_value network mlp,lenet),-,$(experiment_value stages 2,4), in *,lenet,*-*,2,*) training+=(--epochs 2) ;; esac    # it trains no other
experiment_without threads-as-ranks
experiment_draws build/pipeline
mpirun --oversubscribe --bind-to none -n 2 "$program" "${svg_flags[@]}" "${training[@]}" "${json_flags[@]}" "${left[@]}"
