#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which headers one source may include, one after the other, and still show of each what it shows alone. A header that comes before
another gives it names that the other may forget to ask for; not so where the other asks for them anyway. So b stands before a where all that
b brings comes with what a includes before its first line of code. In chains of that order each header is compiled as if alone, in a third of
the sources. (What a includes only below, for its bodies, does not count, nor what #if may leave out.)"""
import pathlib
import re

BODIES = re.compile(r"#\s*if !SKEIN_(?:MPI_)?COMPILED(?:_MPI)?\b")
INCLUDE = re.compile(r'#\s*include\s*(?:<(skein/[^>]+)>|"([^"]+)")')


class Includes:
    """What the headers below a folder include of each other."""

    def __init__(self, root, compiled=False):
        self.root, self.compiled, self.read = pathlib.Path(root).resolve(), compiled, {}

    def of(self, path):
        """(what it certainly includes, those of them before its code, what it may include)"""
        if path not in self.read:
            sure, first, maybe, branches, leading, comment = set(), set(), set(), [], True, False
            for line in map(str.strip, path.read_text().splitlines()):
                if comment or line.startswith("/*"):
                    comment = "*/" not in line
                elif re.match(r"#\s*if", line):
                    branches.append(bool(BODIES.match(line)) and not self.compiled)
                elif re.match(r"#\s*el", line) and branches:
                    branches[-1] = False
                elif re.match(r"#\s*endif", line) and branches:
                    branches.pop()
                elif match := INCLUDE.match(line):
                    other = (self.root / match[1] if match[1] else path.parent / match[2]).resolve()
                    if other.exists():
                        maybe.add(other)
                        if all(branches):
                            sure.add(other)
                            if leading:
                                first.add(other)
                elif line and not line.startswith(("#", "//")):
                    leading = False
            self.read[path] = sure, first, maybe
        return self.read[path]

    def reach(self, paths, which):
        seen, left = set(paths), list(paths)
        while left:
            new = self.of(left.pop())[which] - seen
            seen |= new
            left += new
        return seen

    def before_code(self, path):
        return self.reach(self.of(path)[1], 0)

    def at_most(self, path):
        return self.reach([path], 2)


def chains(headers, root, compiled=False):
    """The headers (named from root) in as few chains as there can be."""
    includes = Includes(root, compiled)
    paths = {header: includes.root / header for header in headers}
    brings = {header: includes.at_most(path) for header, path in paths.items()}
    has = {header: includes.before_code(path) for header, path in paths.items()}
    before = {a: [b for b in headers if b != a and brings[b] <= has[a]] for a in headers}
    behind = {}                                             # header: the one that comes next in its chain, by augmenting paths

    def take(a, seen):
        for b in before[a]:
            if b not in seen:
                seen.add(b)
                if b not in behind or take(behind[b], seen):
                    behind[b] = a
                    return True
        return False

    for a in headers:
        take(a, set())
    made = []
    for header in headers:
        if header not in behind.values():
            made.append([header])
            while made[-1][-1] in behind:
                made[-1].append(behind[made[-1][-1]])
    return made


def self_test(folder):
    """Faults, as sentences."""
    folder, wrong = pathlib.Path(folder), []
    texts = {
        "a.hpp": "int a();\n",
        "over_a.hpp": '// Why.\n#pragma once\n#include "a.hpp"\nint b = a();\n',
        "over_both.hpp": '#include "over_a.hpp"\n#if !SKEIN_COMPILED\n#include "body.ipp"\n#endif\n',
        "forgets.hpp": "int c = a();\n",
        "below.hpp": 'int d = a();\n#if !SKEIN_COMPILED\n#include "body.ipp"\n#endif\n',
        "perhaps.hpp": '#if SOMETIMES\n#include "a.hpp"\n#endif\nint e = a();\n',
        "body.ipp": '#include "a.hpp"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    names = [name for name in texts if name.endswith(".hpp")]
    made = sorted(chains(names, folder))
    wanted = [["a.hpp", "over_a.hpp", "over_both.hpp"], ["below.hpp"], ["forgets.hpp"], ["perhaps.hpp"]]
    if made != wanted:
        wrong.append(f"chains: wanted {wanted}, got {made}")
    return wrong
