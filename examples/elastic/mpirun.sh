#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpirun, again and again: a job of Open MPI that loses a rank ends, all of it, and each start goes on from the newest commit. A job
# that fails MAX_RESTARTS times in a row without a new commit in the folder RUN is given up: what fails there is no machine. A wrong
# flag (status 2) and an interrupt end the loop at once.
#     RUN=run mpirun.sh -n 4 --hostfile hosts ./train --folder run
set -uo pipefail
run=${RUN:-run} most=${MAX_RESTARTS:-3} failed=0
trap 'exit 130' INT TERM
while true; do
  before=$(ls "$run" 2>/dev/null | grep -v partial)
  mpirun "$@"
  status=$?
  case $status in
    0|2|130) exit $status ;;
  esac
  if [ "$(ls "$run" 2>/dev/null | grep -v partial)" != "$before" ]; then failed=0; fi
  failed=$((failed + 1))
  if [ $failed -gt "$most" ]; then
    echo "mpirun.sh: $failed starts without a new commit in $run: given up (status $status)" >&2
    exit $status
  fi
  echo "mpirun.sh: the job ended with status $status: it is started again" >&2
done
