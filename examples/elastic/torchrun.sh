#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# torchrun on each of 1 to 4 machines; all name the same ENDPOINT, of one that stays. Where a rank dies, all are started again, at most
# MAX_RESTARTS times; where a machine leaves or one comes, the ranks that there are then go on. From PyTorch nothing else is used.
#     ENDPOINT=node0:29400 torchrun.sh ./train --folder /shared/run
set -euo pipefail
exec torchrun --no-python --nnodes="${NODES:-1:4}" --nproc-per-node="${RANKS:-2}" --max-restarts="${MAX_RESTARTS:-10}" \
  --monitor-interval=1 --rdzv-backend=c10d --rdzv-id="${JOB:-training}" --rdzv-endpoint="${ENDPOINT:-localhost:29400}" \
  --rdzv-conf="${RDZV_CONF:-last_call_timeout=10}" "$@"
