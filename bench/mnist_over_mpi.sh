#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiment 11 on 1, 2 and 4 processes, both networks, in turns of one start: seconds, speed-up, efficiency, and a line of losses and accuracies
# a rank. Goal: efficiency >= 0.93 at 2 (the paper's of the logistic regression: 0.92; at 4, on four cores, 0.74). Takes --quick (a tenth of
# the samples), --json FILE; anything else goes to the program, such as --epochs 3, --rounds 20 or --data DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/support/experiment.sh
. scripts/ranks.sh                                              # may run as root, and says so to mpirun
experiment_begin 11_mnist_over_mpi "$@"
[ $quick -eq 1 ] && rest=(--samples 6000 "${rest[@]}")
experiment_without network
for network in $(experiment_value network "logistic lenet"); do
  rounds=10
  [ $network = logistic ] && rounds=40                          # an epoch is a tenth of LeNet's
  [ $quick -eq 1 ] && rounds=$((rounds / 2))
  experiment_draws build/mnist_over_mpi _$network
  mpirun --oversubscribe --bind-to none -n 4 "$program" --network $network --processes 1,2,4 --rounds $rounds \
    "${svg_flags[@]}" "${json_flags[@]}" "${left[@]}"
done
