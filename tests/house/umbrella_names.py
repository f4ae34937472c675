#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A public name in the first column of a table of the guide is there after the include that the page speaks of: skein/skein.hpp, for pages on
several ranks the other umbrella headers too, or a header that the row or its section names.

Usage: umbrella_names.py SOURCE_DIR [ignored] | --self-test"""
import pathlib
import re
import sys
import tempfile

import laws

UMBRELLAS = {page: ["skein.hpp"] for page in ("core", "tensor", "nn", "optim", "data", "train", "autodiff", "graph", "draw", "device")}
UMBRELLAS |= {page: ["skein.hpp", "parallel.hpp", "simulate.hpp", "mpi.hpp"] for page in ("parallel", "comm", "plan")}
HEADER = re.compile(r"skein/([\w/]+\.hpp)")
CODE = re.compile(r"`([^`]+)`")


def declared(include):
    """{public name: headers that declare it}"""
    found = {}
    for header in include.rglob("*.hpp"):
        path = header.relative_to(include).as_posix()
        for _, name, _, _ in laws.public_declarations(header.read_text().splitlines()):
            found.setdefault(name, set()).add(path)
    return found


def reached(include, start, known):
    """Headers that come with a header."""
    if start in known:
        return known[start]
    known[start], todo = set(), [start]
    while todo:
        header = todo.pop()
        if header in known[start] or not (include / header).exists():
            continue
        known[start].add(header)
        for name in re.findall(r'^#include "([^"]+\.hpp)"', (include / header).read_text(), re.M):
            todo.append((include / header).parent.joinpath(name).resolve().relative_to(include.resolve()).as_posix())
    return known[start]


def names_in(cell):
    for code in CODE.findall(cell):
        for part in re.split(r",\s*(?![^<(]*[>)])", code):
            match = re.match(r"^(?:\w+::)*(\w+)(?=$|[<({])", part.strip().rstrip("."))
            if match:
                yield match[1]


def check(root):
    include = root / "include/skein"
    where, known, faults, checked = declared(include), {}, [], 0
    for page, umbrellas in UMBRELLAS.items():
        file = root / f"docs/guide/{page}.md"
        if not file.exists():
            continue
        section = ""
        for number, line in enumerate(file.read_text().splitlines(), 1):
            section = "" if line.startswith("#") else section
            if not line.startswith("|"):
                section += line + "\n"
                continue
            cells = re.split(r"(?<!\\)\|", line)
            allowed = set().union(*(reached(include, h, known) for h in umbrellas + HEADER.findall(line) + HEADER.findall(section)))
            for name in names_in(cells[1]):
                if name in where:
                    checked += 1
                    if not where[name] & allowed:
                        faults.append(f"docs/guide/{page}.md:{number}: {name} is in skein/{sorted(where[name])[0]}, which {' and '.join(umbrellas)} "
                                      "do not include: name the header in that row, or include it there")
    if not checked and not faults:
        faults.append("no page lists a name")
    return faults


def self_test():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "include/skein/data").mkdir(parents=True)
        (root / "docs/guide").mkdir(parents=True)
        (root / "include/skein/skein.hpp").write_text('#include "data/a.hpp"\n')
        (root / "include/skein/data/a.hpp").write_text("namespace skein {\n/// A.\nint alpha();\n}  // namespace skein\n")
        (root / "include/skein/data/b.hpp").write_text("namespace skein {\n/// B.\nint beta();\n}  // namespace skein\n")
        for row, count in [("| `alpha`, `other` | a |\n", 0), ("| `sk::beta(x, y)` | b |\n", 1), ("| `beta` | b (`skein/data/b.hpp`) |\n", 0),
                           ("In `skein/data/b.hpp`:\n\n| `beta` | b |\n", 0), ("| `x` | y |\n", 1)]:
            (root / "docs/guide/data.md").write_text("# data\n\n" + row)
            found = check(root)
            if len(found) != count:
                faults.append(f"{row!r}: wanted {count}, found {found}")
    return faults


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "names that a page lists come with the headers that it names")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
