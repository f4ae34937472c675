# SPDX-License-Identifier: Apache-2.0
"""What the peers on a GPU have in common: seconds by events, and the conversation of those that only run."""
import sys

import torch


def seconds_of(call, count):
    """Seconds of `count` calls on the GPU."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return 1e-3 * begin.elapsed_time(end)


def serve(call, warm_up):
    """After `warm_up` calls says "ready", then answers "run N" by the seconds, twice: of wall, and for want of others of the processor."""
    seconds_of(call, warm_up)
    print("ready", flush=True)
    for line in sys.stdin:
        seconds = seconds_of(call, int(line.split()[1]))
        print(repr(seconds), repr(seconds), flush=True)
