#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Several machines: a rank each, with a thread for each of its cores. The data are copied to each machine's own disk first.
#     SKEIN_DATA=/shared/data sbatch several_nodes.sh ./my_training --epochs 10
#SBATCH --job-name=training
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --hint=nomultithread                # cores are counted, as mpirun does below, not hardware threads
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.log
set -euo pipefail
if [ -n "${SKEIN_DATA:-}" ]; then
  scratch=${TMPDIR:-/tmp}/data-$SLURM_JOB_ID
  on_each_machine=(srun --overlap --ntasks="$SLURM_NNODES" --ntasks-per-node=1)
  "${on_each_machine[@]}" cp -r "$SKEIN_DATA" "$scratch"
  trap '"${on_each_machine[@]}" rm -rf "$scratch"' EXIT
  export SKEIN_DATA=$scratch
fi
export SKEIN_THREADS=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=1
export SKEIN_DEADLINE=120                                     # seconds until a machine that does not answer is named
mpirun --map-by "ppr:$SLURM_NTASKS_PER_NODE:node:PE=$SLURM_CPUS_PER_TASK" --bind-to core \
  -x SKEIN_DATA -x SKEIN_THREADS -x SKEIN_DEADLINE -x OMP_NUM_THREADS "$@"
