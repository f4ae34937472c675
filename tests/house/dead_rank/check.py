#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank that is killed is named on every other rank within a second or two, whatever the deadline (60 s), and one that is stopped within the
deadline and the time to ask who is missing: over each transport one that is killed, over all but the server one that is stopped, with 1, 2 or 4
threads a rank. Each run takes seconds, so that these are 13 of the 36 combinations: each number of threads meets both signals, not over each transport.
Arguments: the program, then the command that starts MPI ranks, without their number."""
import re
import signal
import subprocess
import sys

RANKS = {"memory": 3, "pages": 3, "messages": 3, "native": 3, "levels": 4, "server": 3}
CASES = [("memory", 1, "KILL"), ("memory", 4, "STOP"), ("pages", 1, "KILL"), ("pages", 1, "STOP"),
         ("messages", 2, "KILL"), ("messages", 1, "STOP"), ("native", 1, "STOP"), ("native", 2, "KILL"), ("native", 4, "STOP"),
         ("levels", 1, "KILL"), ("levels", 2, "STOP"), ("levels", 4, "KILL"), ("server", 1, "KILL")]


def fault(program, start, transport, threads, name):
    """What is wrong with one run, or nothing."""
    ranks = RANKS[transport]
    number = int(getattr(signal, "SIG" + name))
    command = start + ["-n", str(ranks), program, transport, str(threads), str(number)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    except subprocess.TimeoutExpired as e:
        return f"it does not end\n{e.stdout}"
    for rank in (r for r in range(ranks) if r != 1):
        line = re.search(rf"^rank {rank} of {ranks}, after ([0-9.]+) s: (.*)$", done.stdout, re.MULTILINE)
        if not line:
            return f"rank {rank} says nothing\n{done.stdout}"
        if ("rank 1 is gone: its process ended" if name == "KILL" else "rank 1 did not arrive within 3 s") not in line[2]:
            return f"rank {rank} is told: {line[2]}"
        if float(line[1]) > 20:  # 1.3 s, or 3.8 s where the rank is stopped, where cores are free
            return f"rank {rank} is told after {line[1]} s"
    return None


def main():
    program, start = sys.argv[1], sys.argv[2:]
    version = subprocess.run([start[0], "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        print("dead_rank: skipped: only of Open MPI is it known how ranks outlive one of theirs")
        return 77
    bad = 0
    for case in CASES:
        text = fault(program, start + ["--enable-recovery"], *case)
        print(*case, text or "is named", flush=True)
        bad += text is not None
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
