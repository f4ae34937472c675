#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One machine without GPUs: a few ranks, each bound to cores of its own, with a thread for each of them.
#     sbatch one_node.sh ./my_training --epochs 10
#SBATCH --job-name=training
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --hint=nomultithread                # cores are counted, as mpirun does below, not hardware threads
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.log
set -euo pipefail
export SKEIN_THREADS=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=1   # threads are skein's: a BLAS below it starts none
mpirun --map-by "ppr:$SLURM_NTASKS_PER_NODE:node:PE=$SLURM_CPUS_PER_TASK" --bind-to core "$@"
