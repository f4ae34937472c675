#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A training that is put back into the queue when its time is almost over, or a rank was killed, and goes on from the newest commit;
# when a machine fails, Slurm does so by itself. Two minutes before the limit Slurm sends the ranks SIGUSR1, and the program ends with
# 128 + 10 after a commit. An error of the program (a status below 128) ends the job, as do MAX_RESTARTS restarts. srun kills no rank
# because another has ended: the status would be that signal's, and ranks notice by themselves.
#     sbatch slurm.sh ./train --folder run
#SBATCH --job-name=training
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append
set -uo pipefail
export SKEIN_THREADS=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=1
srun --kill-on-bad-exit=0 --cpus-per-task="$SLURM_CPUS_PER_TASK" "$@"
status=$?
if [ $status -ge 128 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "${MAX_RESTARTS:-20}" ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit $status
