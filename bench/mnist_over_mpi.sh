#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiment 11 on 1, 2 and 4 processes (one core each where there are so many), both networks: seconds, speed-up, efficiency, and a line
# of losses and accuracies a rank. Goal: efficiency >= 0.93 at 2 (the paper's: 0.92). Takes --quick (a tenth of the samples); anything else
# goes to the program, such as --epochs 3.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
build=$root/build/bench
. scripts/ranks.sh
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) arguments+=(--samples 6000) ;;
    --json) shift ;;                                            # it has a table, no ratios against a peer
    *) arguments+=("$1") ;;
  esac
  shift
done
if ! { cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSKEIN_TESTS=OFF -DSKEIN_EXAMPLES=ON -DSKEIN_INSTALL=OFF &&
       cmake --build "$build" --target example_11_mnist_over_mpi; } >"$root/build/bench.log" 2>&1 </dev/null; then
  tail -n 40 "$root/build/bench.log"
  exit 1
fi
record=$(mktemp)
trap 'rm -f "$record"' EXIT
rm -f "$record"
for network in logistic lenet; do
  for ranks in 1 2 4; do
    ranks_start "$ranks"
    echo "-- $network, $ranks processes, $ranks_placing"
    "${start[@]}" "$build/examples/experiments/11_mnist_over_mpi" --network "$network" --record "$record" "${arguments[@]}"
  done
done
