#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header has a test of its name (include/skein/nn/linear.hpp: tests/nn/linear_test.cpp), or a line in covered_by.txt that says what
covers it: a test that includes the header or speaks of a type that it declares, or a header that includes it and is covered itself.

Usage: header_tests.py SOURCE_DIR [ignored] | --suggest SOURCE_DIR | --self-test
--suggest prints lines for headers that have neither, or a line that is wrong."""
import pathlib
import re
import sys

TYPE = re.compile(r"^(?:template <.*> ?)?(?:struct|class|concept|enum class|using) ([A-Z]\w+)", re.M)
FUNCTION = re.compile(r"^(?!using|return|#)\S.*?[\s&*]([a-z]\w{4,})\(", re.M)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def declared(text):
    """Names of types and concepts at namespace scope; of functions where there are none."""
    return set(TYPE.findall(text)) or set(FUNCTION.findall(text))


def included(root, header):
    """The library's headers that a header includes."""
    include = (root / "include/skein").resolve()
    found = [(include / header).parent / name for name in INCLUDE.findall((include / header).read_text())]
    return {path.resolve().relative_to(include) for path in found if path.exists() and path.resolve().is_relative_to(include)}


def tests_of_name(header):
    """The files that a header's own test may be."""
    folder, stem = header.parent, header.stem
    beside = folder.parent if folder.name in ("cuda", "cpu", "reference") else folder
    return [f"tests/{place}/{stem}_test.{kind}".replace("/./", "/") for place in dict.fromkeys((folder, folder / "cuda", beside)) for kind in ("cpp", "cu")]


def covers(test, header, names):
    return f"skein/{header}" in test or any(re.search(rf"\b{name}\b", test) for name in names)


def read_table(path):
    table = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            header, _, test = line.partition(": ")
            table[header] = test.strip()
    return table


def faults_of(root, headers, table):
    faults = []
    for header in headers:
        own = any((root / test).exists() for test in tests_of_name(header))
        listed = table.get(str(header))
        if own and listed:
            print(f"{header} has a test of its name: its line in covered_by.txt can go")
        elif not own and not listed:
            faults.append(f"{header} has no test of its name ({tests_of_name(header)[0]}), and no line in tests/house/covered_by.txt")
        elif listed and (root / "include/skein" / listed).is_file():
            if header not in included(root, listed):
                faults.append(f"{header}: {listed} does not include it")
            elif not any((root / test).exists() for test in tests_of_name(pathlib.Path(listed))) and listed not in table:
                faults.append(f"{header}: {listed} is not covered itself")
        elif listed and not (root / listed).exists():
            faults.append(f"{header}: tests/house/covered_by.txt names {listed}, which is not there")
        elif listed and not covers((root / listed).read_text(), header, declared((root / "include/skein" / header).read_text())):
            faults.append(f"{header}: {listed} neither includes it nor speaks of a name that it declares")
    for header in table if len(headers) > 1 else ():
        if pathlib.Path(header) not in headers:
            print(f"covered_by.txt: there is no header {header}; its line can go")
    return faults


def headers_of(root):
    include = root / "include/skein"
    return [p.relative_to(include) for p in sorted(include.rglob("*.hpp"))]


def suggest(root):
    tests = {str(p.relative_to(root)): p.read_text() for kind in ("*.cpp", "*.cu", "*_cases.hpp", "*_harness.hpp") for p in sorted((root / "tests").rglob(kind))
             if "compile_fail" not in p.parts}
    headers = headers_of(root)
    table = read_table(root / "tests/house/covered_by.txt")
    open_ = [header for header in headers if faults_of(root, [header], table)]
    includers = {header: [other for other in headers if header in included(root, other)] for header in open_}
    for header in open_:
        names = declared((root / "include/skein" / header).read_text())
        score = {test: (f"skein/{header}" in text, sum(bool(re.search(rf"\b{name}\b", text)) for name in names), test.startswith(f"tests/{header.parts[0]}/"))
                 for test, text in tests.items()}
        best = max(score, key=score.get)
        through = [other for other in includers[header] if other not in open_] + includers[header]
        if score[best][0] or (score[best][1] and score[best][2]):
            print(f"{header}: {best}")
        else:
            print(f"{header}: {through[0] if through else best if score[best][1] else '(write a test)'}")


def self_test():
    import tempfile
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for path, text in {"include/skein/a/one.hpp": "", "include/skein/a/two.hpp": "struct Two {\n};\n", "include/skein/a/three.hpp": "int three(int a);\n",
                           "include/skein/a/four.hpp": "", "include/skein/a/cuda/five.hpp": "", "tests/a/one_test.cpp": "Two t;", "tests/a/five_test.cu": ""}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        said = faults_of(root, headers_of(root), {"a/two.hpp": "tests/a/one_test.cpp", "a/three.hpp": "tests/a/one_test.cpp"})
    wanted = ["a/four.hpp has no test of its name", "a/three.hpp: tests/a/one_test.cpp neither"]
    return [f"wanted {wanted}, got {said}"] if len(said) != 2 or any(not s.startswith(w) for s, w in zip(said, wanted)) else []


def main():
    if sys.argv[1] == "--self-test":
        faults = self_test()
        print("\n".join(faults) if faults else "headers without a test are named")
    elif sys.argv[1] == "--suggest":
        faults = []
        suggest(pathlib.Path(sys.argv[2]))
    else:
        root = pathlib.Path(sys.argv[1])
        faults = faults_of(root, headers_of(root), read_table(root / "tests/house/covered_by.txt"))
        print("\n".join(faults) if faults else "every header has a test")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
