#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program that is to print an expression, and looks at its exit status too: ctest's PASS_REGULAR_EXPRESSION does not, and a program that
prints its line and crashes then would pass.

The status is 0. Where the expression is found in an error (on a line that begins with the program's name or a rank's, as sk::run and an
exception that passes the world write it) it is 1, of a wrong flag 2; with --fails, anything but 0. A status of 77 is a test that was skipped.

Usage: expects.py [--fails] EXPRESSION PROGRAM -- COMMAND... | --self-test"""
import pathlib
import re
import subprocess
import sys

SKIPPED = 77


def fault(expression, program, output, status, fails=False):
    """What is wrong with a run; "" where nothing is."""
    found = re.search(expression, output, re.S)                 # a dot of CMake's is any character, the end of a line too
    if not found:
        return f"it did not print '{expression}', and ended with {status}"
    if fails:
        return "" if status != 0 else f"it printed '{expression}', and ended with 0 all the same"
    line = output[output.rfind("\n", 0, found.start()) + 1:]
    refused = re.match(rf"(?:{re.escape(program)}|rank \d+): ", line)
    if status not in ((1, 2) if refused else (0,)):
        return f"it printed '{expression}', and ended with {status} instead of {'1 or 2' if refused else 0}"
    return ""


def self_test():
    wrong = []
    for expression, output, status, good in [
            ("acc [0-9]+.*end", "start\nacc 9\nthe end\n", 0, True), ("acc [0-9]+", "acc 9\n", 1, False), ("acc [0-9]+", "acc 9\n", -11, False),
            ("acc [0-9]+", "acc\n", 0, False), ("is not", "a\nprogram: 3 is not 2\n", 2, True), ("is not", "rank 0: 3 is not 2\n", 1, True),
            ("is not", "rank 0: 3 is not 2\n", 0, False), ("is not", "program: 3 is not 2\n", -6, False), ("a|b", "other: b\n", 1, False)]:
        if (fault(expression, "program", output, status) == "") != good:
            wrong.append(f"{expression!r} in {output!r}, status {status}: wanted {good}")
    if fault("1 failed", "program", "1 failed\n", 1, fails=True) or not fault("1 failed", "program", "1 failed\n", 0, fails=True):
        wrong.append("--fails takes a status of 0, or none other")
    run = [sys.executable, __file__, "late", "sh", "--", "sh", "-c"]
    for script, status in [("echo late", 0), ("echo late; exit 3", 1), ("echo late; kill -9 $$", 1), ("echo sh: late >&2; exit 1", 0), ("exit 77", SKIPPED)]:
        ended = subprocess.run([*run, script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if ended.returncode != status:
            wrong.append(f"{script}: {ended.returncode} instead of {status}: {ended.stdout!r}")
    return wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "outputs and exit statuses are looked at")
        return 1 if faults else 0
    fails = sys.argv[1] == "--fails"
    expression, program, _, *command = sys.argv[2 if fails else 1:]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = b""
    for line in run.stdout:                                      # at once, so that what is lost to a time limit is none of it
        output += line
        sys.stdout.buffer.write(line)
        sys.stdout.flush()
    status = run.wait()
    if status == SKIPPED:
        return SKIPPED
    sentence = fault(expression, pathlib.Path(program).name, output.decode(errors="replace"), status, fails)
    if sentence:
        print(f"{pathlib.Path(program).name}: {sentence}")
    return 1 if sentence else 0


if __name__ == "__main__":
    sys.exit(main())
