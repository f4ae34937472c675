# SPDX-License-Identifier: Apache-2.0
"""What the small peers have in common: how a call is timed, and the conversation with the bench."""
import sys
import time


def timed(call):
    """Seconds of wall and of processor time of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def repeated(call, n):
    """timed() of n calls, behind one that is not."""
    call()

    def all_of_them():
        for _ in range(n):
            call()

    return timed(all_of_them)


def serve(run, check):
    """Says "ready", then answers each line: "run N" by run(N), any other by check(numbers)."""
    print("ready", flush=True)
    for line in sys.stdin:
        what, *values = line.split()
        numbers = [int(v) for v in values]
        answer = run(*numbers) if what == "run" else check(*numbers)
        print(*(repr(a) for a in answer), flush=True)
