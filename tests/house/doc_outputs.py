#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A page shows what a program prints: a block of text after `<!-- output: SOURCE -->`. Runs the program and compares.

Words must be equal, numbers nearly (to a fifth, since another processor rounds otherwise); times and the numbers in lines of progress may
differ. Without such a block the program only has to end well.

Usage: doc_outputs.py [--update] REPOSITORY SOURCE -- COMMAND... | --self-test"""
import pathlib
import re
import subprocess
import sys

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w*[A-Za-z_])")
TIMED = re.compile(r"[-+\d.]+ ?(?:h|min|s|ms|us)\b|[-+\d.]+[kM]? samples/s|[-+\d.]+ ?%? exposed")


def block_of(source):
    return re.compile(rf"(<!-- output: {re.escape(source)} -->\n```text\n)(.*?)(^```$)", re.M | re.S)


def words(line):
    return re.sub(r"\s+", " ", NUMBER.sub("#", TIMED.sub("TIME", line))).strip()


def close(a, b):
    """Nearly equal: a fifth, and two units of the last decimal that the page shows."""
    x, y = float(a), float(b)
    return abs(x - y) <= 0.2 * abs(x) + (2 * 10.0 ** -len(a.split(".")[1]) if "." in a and "e" not in a else 0)


def differences(shown, printed):
    """Sentences on what differs between the page and the run."""
    a, b = shown.rstrip().splitlines(), printed.rstrip().splitlines()
    if len(a) != len(b):
        return [f"the page shows {len(a)} lines, the program prints {len(b)}"]
    faults = []
    for left, right in zip(a, b):
        if words(left) != words(right):
            faults.append(f"the page shows '{left}', the program prints '{right}'")
        elif "samples/s" not in left and not all(close(x, y) for x, y in zip(NUMBER.findall(TIMED.sub("", left)), NUMBER.findall(TIMED.sub("", right)))):
            faults.append(f"numbers differ by more than a fifth: the page shows '{left}', the program prints '{right}'")
    return faults


def lines_of(output):
    """What stays on a terminal: a line that is written over again counts once, a bar of progress not at all."""
    lines = [line.split("\r")[-1].rstrip() for line in output.replace("\r\n", "\n").split("\n")]
    return "\n".join(line for line in lines if not re.search(r"\[[=> ]{5,}\]", line)).strip("\n") + "\n"


def pages(root):
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def self_test():
    wrong = []
    for shown, printed, fault in [("loss 0.120\n", "loss 0.121\n", ""), ("epoch 1  loss 3  2k samples/s\n", "epoch 1  loss 4  3M samples/s\n", ""), ("loss 0.12\n", "loss 0.3\n", "a fifth"), ("a 1 in 2.1 s\n", "a 1 in 9 s\n", ""),
                                  ("a 1\n", "b 1\n", "prints 'b 1'"), ("a\n", "a\nb\n", "prints 2"), ("4 ranks\n", "3 ranks\n", "a fifth")]:
        found = differences(shown, printed)
        if (not fault and found) or (fault and (len(found) != 1 or fault not in found[0])):
            wrong.append(f"{shown!r} against {printed!r}: wanted '{fault}', found {found}")
    if lines_of("\repoch 1 [===>   ] 2/80\r      \repoch 1 loss 2\r\nend\n") != "epoch 1 loss 2\nend\n":
        wrong.append("what a terminal shows in the end")
    return wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "outputs are compared")
        return 1 if faults else 0
    update = sys.argv[1] == "--update"
    root, source, _, *command = sys.argv[2 if update else 1:]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = lines_of(run.stdout.decode(errors="replace"))
    print(output, end="")
    faults = [f"it ended with {run.returncode}"] if run.returncode != 0 else []
    for page in pages(pathlib.Path(root)):
        text = page.read_text()
        for match in block_of(source).finditer(text):
            if not update:
                faults += [f"{page.relative_to(root)}: {d}" for d in differences(match[2], output)]
        if update and block_of(source).search(text):
            page.write_text(block_of(source).sub(lambda m: m[1] + output.rstrip() + "\n" + m[3], text))
    if faults:
        print(f"{source}: " + "\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
