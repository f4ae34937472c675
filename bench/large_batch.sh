#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiment 19: LeNet-5 with the same epochs at batches of 128 to 8192, by plain SGD, linear scaling, LARS, LAMB and K-FAC, 3 seeds; the largest batch in
# 1 GiB, and where throughput ends. Takes --quick (one seed, an epoch of 12,800 samples) and --json FILE; anything else goes to the program.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/support/experiment.sh
experiment_begin 19_large_batch "$@"
settings=(--epochs 10 --batches 128,256,512,1024,2048,4096,8192 --seeds 3 --memory 1024)
[ $quick -eq 1 ] && settings=(--epochs 2 --batches 128,512 --seeds 1 --samples 12800 --memory 64)
if [ "$(experiment_value method all)" = none ]; then             # nothing is trained, nor drawn
  settings=(--memory $([ $quick -eq 1 ] && echo 64 || echo 1024))
  experiment_draws ""
else
  experiment_draws build/large_batch
fi
"$program" "${svg_flags[@]}" "${json_flags[@]}" "${settings[@]}" "${rest[@]}"
