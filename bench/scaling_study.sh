#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiment 20 on 1, 2 and 4 processes: ResNet50V2 and ResNet152V2 on CIFAR-10 images of 128 x 128, the same batch on each rank: seconds an epoch, images
# a second, speed-up, efficiency and the parts of a step, and, simulated, more ranks. Processes beyond the cores are left out. Takes --quick (images of
# 32 x 32, ResNet50V2 alone); its table is what it prints: a --json FILE gets nothing. Anything else goes to the program.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/support/experiment.sh
. scripts/ranks.sh
experiment_begin 20_scaling_study "$@"
[ $quick -eq 1 ] && rest=(--side 32 --depths 50 "${rest[@]}")
record=$(mktemp)
trap 'rm -f "$record"' EXIT
for n in 1 2 4; do
  [ "$n" -gt "$(nproc)" ] && break
  ranks_start "$n"
  experiment_draws build/scaling_study                          # of all numbers of ranks so far
  "${start[@]}" "$program" --threads 1 --record "$record" "${svg_flags[@]}" "${rest[@]}"
done
