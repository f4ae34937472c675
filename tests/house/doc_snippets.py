#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The code in the documentation is quoted from files that are compiled: README.md, CONTRIBUTING.md and docs/**/*.md.

A block of C++ or CMake has a line `<!-- quote: PATH#REGION -->` before it, others may have one, and it equals that region, which stands in
PATH between `// [quote REGION]` and `// [end]`; without `#REGION` it is the whole file, but for its licence line and what tells ctest how to run it. Common indentation is left
out, and so are expectations of the tests: lines that begin with CHECK or REQUIRE, or end with `// not quoted`, and what
turns clang-format off and on.

Usage: doc_snippets.py <repository> | --update <repository> | --self-test"""
import pathlib
import re
import sys
import tempfile
import textwrap

BLOCK = re.compile(r"^(?P<quote><!-- quote: (?P<path>[^#\s]+)(?:#(?P<region>\w+))? -->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$",
                   re.M | re.S)
CHECKED = {"cpp", "cmake"}
COMPILED = ("examples/", "tests/", "test_package/", "bench/", "include/")


def documents(root):
    return [root / name for name in ("README.md", "CONTRIBUTING.md") if (root / name).is_file()] + sorted(
        page for page in (root / "docs").rglob("*.md") if page.parent.name != "reference")  # that one is made of the headers


def quoted(root, path, region):
    """The text that a block has to equal. Raises ValueError with the sentence."""
    if not path.startswith(COMPILED) or not (root / path).is_file():
        raise ValueError(f"quotes {path}, which is no file that is compiled here")
    lines = (root / path).read_text().splitlines()
    if region is None:
        lines = [line for line in lines if "SPDX-License-Identifier" not in line and not line.startswith("// ctest")]
        return "\n".join(lines).strip("\n") + "\n"
    inside, found, closed = [], 0, False
    for line in lines:
        if re.fullmatch(rf"\s*(//|#) \[quote {region}\]", line):
            found += 1
            closed = False
        elif re.fullmatch(r"\s*(//|#) \[end\]", line):
            closed = True
        elif found and not closed and not re.match(r"\s*(CHECK|REQUIRE|// clang-format o(n|ff)$)|.*// not quoted$", line):
            inside.append(line)
    if found != 1:
        raise ValueError(f"quotes {path}#{region}: there are {found} regions of that name")
    if not closed:
        raise ValueError(f"quotes {path}#{region}, which has no end")
    return textwrap.dedent("\n".join(inside)).strip("\n") + "\n"


def check(root, update=False):
    faults, blocks = [], 0
    for document in documents(root):
        text, name = document.read_text(), document.relative_to(root).as_posix()

        def visit(match):
            nonlocal blocks
            if match["language"] not in CHECKED and not match["quote"]:
                return match[0]
            where = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
            if not match["quote"]:
                faults.append(f"{where}: a block of {match['language']} that quotes nothing: give it <!-- quote: path#region -->")
                return match[0]
            blocks += 1
            try:
                wanted = quoted(root, match["path"], match["region"])
            except ValueError as fault:
                faults.append(f"{where}: {fault}")
                return match[0]
            if match["code"] == wanted:
                return match[0]
            if update:
                return f"{match['quote']}```{match['language']}\n{wanted}```"
            faults.append(f"{where}: differs from {match['path'] + ('#' + match['region'] if match['region'] else '')}: tests/house/doc_snippets.py --update .")
            return match[0]

        for line in re.finditer(r"^<!-- quote: .*-->\n(?!```)", text, re.M):
            faults.append(f"{name}:{text.count(chr(10), 0, line.start()) + 1}: a quote without a block of code behind it")
        changed = BLOCK.sub(visit, text)
        if changed != text:
            document.write_text(changed)
    if blocks == 0 and not faults:
        faults.append("no document quotes anything")
    return faults


def self_test():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "tests").mkdir()
        (root / "tests/a.cpp").write_text("// SPDX-License-Identifier: Apache-2.0\nint f() {\n  // [quote one]\n  int x = 1;\n"
                                          "  CHECK(x == 1);\n  return x;\n  // [end]\n}\n// [quote open]\nint y;\n")

        def found(markdown):
            (root / "README.md").write_text(markdown)
            return check(root)

        right = "<!-- quote: tests/a.cpp#one -->\n```cpp\nint x = 1;\nreturn x;\n```\n"
        (root / "tests/a.sh").write_text("#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\nls\n")
        script = "<!-- quote: tests/a.sh -->\n```sh\n#!/bin/bash\nls\n```\n"
        if found(right + "\n```sh\nls\n```\n" + script):
            wrong.append("a right quote is refused")
        for planted, sentence in [(right.replace("x = 1", "x = 2"), "differs from tests/a.cpp#one"), (right.replace("#one", "#two"), "there are 0"),
                                  (right.replace("#one", "#open"), "has no end"), (right.replace("tests/a", "docs/a"), "no file that is compiled"),
                                  ("```cpp\nint z;\n```\n", "quotes nothing"),
                                  (script.replace("ls", "ls -l"), "differs from tests/a.sh"),
                                  (right + "<!-- quote: tests/a.cpp#one -->\n\ntext\n", "without a block"), ("text\n", "no document quotes")]:
            faults = found(planted)
            if len(faults) != 1 or sentence not in faults[0]:
                wrong.append(f"planted {planted!r}, wanted '{sentence}', found {faults}")
        (root / "README.md").write_text(right.replace("x = 1", "x = 2"))
        check(root, update=True)
        if (root / "README.md").read_text() != right:
            wrong.append("--update does not write the region")
    return wrong


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        faults = self_test()
    elif arguments[0] == "--update":
        faults = check(pathlib.Path(arguments[1]), update=True)
    else:
        faults = check(pathlib.Path(arguments[0]))
    print("\n".join(faults) if faults else "every block of code is quoted from a file that is compiled")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
