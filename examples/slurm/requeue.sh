#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A training that is longer than a job may last. Two minutes before the time limit Slurm sends this script SIGUSR1; mpirun hands
# it on to the ranks; the program stops after its step, saves and ends; the job goes back into the queue, and its next start
# loads what was saved. The program's part is examples/cookbook/requeue.cpp. A program that fails, or is done, is not started again
# (but where the signal came in its last moments: that start finds nothing to do).
#     sbatch requeue.sh ./my_training
#SBATCH --job-name=training
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --hint=nomultithread                # cores are counted, as mpirun does below, not hardware threads
#SBATCH --time=01:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append
set -euo pipefail
export SKEIN_THREADS=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=1
mpirun --map-by "ppr:$SLURM_NTASKS_PER_NODE:node:PE=$SLURM_CPUS_PER_TASK" --bind-to core "$@" &
training=$!
again=no
trap 'again=yes; kill -USR1 "$training" || true' USR1
wait "$training" || true                                      # until it has ended, or the signal comes
wait "$training"                                              # until it has saved; where it fails, the job does
if [ $again = yes ]; then scontrol requeue "$SLURM_JOB_ID"; fi
