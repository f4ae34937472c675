#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one ctest entry for each test case of a Catch2 program. Catch2's own catch_discover_tests joins names that hold half a
bracket, such as "uniform in [0, 1)", into one entry: their cases would pass unseen. An entry that selects no case fails (-w NoTests).

Usage: discover.py PROGRAM OUTPUT.cmake PREFIX [PROPERTY=VALUE]... | --self-test"""
import re
import subprocess
import sys


def quoted(text):
    """A bracket argument of CMake, whatever the text holds."""
    fence = "=" * (1 + max([len(run) for run in re.findall("=+", text)], default=0))
    return f"[{fence}[{text}]{fence}]"


def as_pattern(name):
    """What Catch2 selects exactly this test case by."""
    return re.sub(r'([\\,\[\]"*~])', r"\\\1", name)


def entries(program, names, prefix, properties):
    lines = []
    for name in names:
        lines.append(f"add_test({quoted(prefix + name)} {quoted(program)} {quoted(as_pattern(name))} -w NoTests)")
        words = " ".join(quoted(word) for property in properties for word in property.split("=", 1))
        lines.append(f"set_tests_properties({quoted(prefix + name)} PROPERTIES {words})")
    return "\n".join(lines) + "\n"


def self_test():
    text = entries("/bin/x", ["uniform in [0, 1)", "]] and ]=]"], "core/", ["TIMEOUT=9"])
    wanted = ["add_test([=[core/uniform in [0, 1)]=] [=[/bin/x]=] [=[uniform in \\[0\\, 1)]=] -w NoTests)", "[==[core/]] and ]=]]==]",
              "[=[TIMEOUT]=] [=[9]=]"]
    return [f"missing {words} in\n{text}" for words in wanted if words not in text]


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "names are kept apart")
        return 1 if faults else 0
    program, output, prefix, *properties = sys.argv[1:]
    listed = subprocess.run([program, "--list-test-names-only"], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    names = [name for name in listed.stdout.splitlines() if name.strip()]
    if not names or listed.returncode < 0:
        print(f"{program} lists no test case: {listed.returncode}", file=sys.stderr)
        return 1
    with open(output, "w") as file:
        file.write(entries(program, names, prefix, properties))
    return 0


if __name__ == "__main__":
    sys.exit(main())
