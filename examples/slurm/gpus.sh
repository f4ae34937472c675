#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Machines with GPUs: a rank a GPU. The program makes sk::NcclComm world{argc, argv}, and finds its rank, its GPU and rank 0's
# address in what srun sets: no MPI. This script has not run: the tests have no GPU.
#     sbatch gpus.sh ./my_training --epochs 10
#SBATCH --job-name=training
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.log
set -euo pipefail
export SKEIN_THREADS=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=1
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" --cpu-bind=cores "$@"
