# SPDX-License-Identifier: Apache-2.0
"""What a compiler pays for a source: processor time and peak memory."""
import os
import subprocess
import sys


class Compiler:
    def __init__(self, command, quick):
        self.command, self.runs = command, 1 if quick else 3

    def compile(self, source, target, flags):
        """(seconds, megabytes): the least of the runs."""
        best = None
        for _ in range(self.runs):
            child = subprocess.Popen([self.command, "-std=c++20", "-O2", "-march=native", "-w", *flags, str(source), "-o",
                                      str(target)])
            _, status, usage = os.wait4(child.pid, 0)
            if status != 0:
                sys.exit(f"{self.command} does not compile {source}")
            figures = (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
            best = figures if best is None or figures < best else best
        return best
