#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpirun, again and again: a job of Open MPI that loses a rank ends, all of it, and each start goes on from the newest commit. A start
# without a new commit in the folder RUN is tried again MAX_RESTARTS times: what fails then is no machine. A wrong flag (status 2) and an
# interrupt end the loop at once, and so does SIGTERM, which the job gets.
#     RUN=run mpirun.sh -n 4 --hostfile hosts ./train --folder run
set -uo pipefail
run=${RUN:-run} most=${MAX_RESTARTS:-3} failed=0
trap 'kill -TERM $job; wait $job; exit 143' TERM
trap 'wait $job; exit 130' INT   # which a terminal sends to mpirun too
while true; do
  before=$(ls "$run" 2>/dev/null | grep -v partial)
  mpirun "$@" <&0 &
  job=$!
  wait $job
  status=$?
  case $status in
    0|2|130) exit $status ;;
  esac
  if [ "$(ls "$run" 2>/dev/null | grep -v partial)" = "$before" ]; then failed=$((failed + 1)); else failed=0; fi
  if [ $failed -gt "$most" ]; then
    echo "mpirun.sh: $failed starts without a new commit in $run: given up (status $status)" >&2
    exit $status
  fi
  echo "mpirun.sh: the job ended with status $status: it is started again" >&2
done
