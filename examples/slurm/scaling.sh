#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The same training on 1, 2 and 4 ranks, one after the other (%1), so that each finds the time of one rank in the file of --record.
#     sbatch scaling.sh ./20_scaling_study --threads 0 --record study.csv --svg study
#SBATCH --job-name=scaling
#SBATCH --array=1,2,4%1
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --hint=nomultithread                # cores are counted, as mpirun does below, not hardware threads
#SBATCH --exclusive
#SBATCH --time=00:30:00
#SBATCH --output=%x-%A.log
#SBATCH --open-mode=append
set -euo pipefail
export SKEIN_THREADS=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=1
mpirun -n "$SLURM_ARRAY_TASK_ID" --map-by "slot:PE=$SLURM_CPUS_PER_TASK" --bind-to core "$@"
