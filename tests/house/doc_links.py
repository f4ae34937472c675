#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documentation names is there: README.md, CONTRIBUTING.md and docs/**/*.md.

Checked are relative links and their anchors; paths of this repository in `code` and in blocks of shell commands; names of the
library in `code` (a::b is a word of a header); environment variables and CMake options (SKEIN_...).

Usage: doc_links.py <repository> | --self-test"""
import functools
import pathlib
import re
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FOLDERS = "include|tests|examples|scripts|docs|bench|cmake|test_package"
PATH = re.compile(rf"(?<![\w./-])((?:{FOLDERS})/[\w./-]*\w|skein/[\w/]+\.hpp)")
NAME = re.compile(r"(?<![\w:])(?:[A-Za-z_]\w*::)+([A-Za-z_]\w*)")
VARIABLE = re.compile(r"(?<!\w)(?<!-D)(SKEIN_[A-Z_]+)\b|-D(SKEIN_[A-Z_]+)")
OTHERS = ("std::", "boost::", "MPI::", "torch::")           # names of others


def documents(root):
    return [root / name for name in ("README.md", "CONTRIBUTING.md") if (root / name).is_file()] + sorted((root / "docs").rglob("*.md"))


def anchors(text):
    found = set()
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M):
        anchor = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")
        number = next((n for n in range(1, len(found) + 1) if f"{anchor}-{n}" not in found), 1) if anchor in found else 0
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


@functools.cache
def anchors_of(file, _age):
    return anchors(file.read_text())


def words_of(root):
    """All words of the headers and of the CMake files; all words of whatever reads SKEIN_ variables."""
    headers, settings = set(), set()
    for file in [*(root / "include").rglob("*.[hi]pp"), *root.glob("cmake/*"), *root.glob("CMakeLists.txt")]:
        headers |= set(re.findall(r"\w+", file.read_text(errors="replace")))
    for folder in ("include", "scripts", "cmake", "tests"):
        for file in (root / folder).rglob("*"):
            if file.is_file() and file.suffix in {".hpp", ".cpp", ".py", ".txt", ".cmake", ".sh", ""}:
                settings |= set(re.findall(r"SKEIN_[A-Z_]+", file.read_text(errors="replace")))
    return headers, settings | {word for word in headers if word.startswith("SKEIN_")}


def check(root):
    faults = []
    headers, settings = words_of(root)
    for document in documents(root):
        text, name = document.read_text(), document.relative_to(root).as_posix()
        fault = lambda what: faults.append(f"{name}: {what}")
        prose = FENCE.sub("", text)
        for target in LINK.findall(prose):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (document.parent / path if path else document).resolve()
            if not file.exists() or not file.is_relative_to(root.resolve()):
                fault(f"links to {target}, which is not there")
            elif anchor and file.suffix == ".md" and anchor not in anchors_of(file, file.stat().st_mtime_ns):
                fault(f"links to {target}: there is no such heading")
        commands = [body for language, body in FENCE.findall(text) if language == "sh"]
        code = CODE.findall(prose)
        for path in PATH.findall("\n".join(code + commands)):
            if not (root / path).exists() and not (root / "include" / path).exists():
                fault(f"names {path}, which is not there")
        for span in code:
            for match in NAME.finditer(span):
                if not match[0].startswith(OTHERS) and match[1] not in headers:
                    fault(f"names {match[0]}, which no header has")
        for pair in VARIABLE.findall("\n".join(code + commands)):
            variable = pair[0] or pair[1]
            if variable not in settings:
                fault(f"names {variable}, which nothing reads")
    if not documents(root):
        faults.append("there is no document")
    return faults


def self_test():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in {"include/skein/nn/model.hpp": "class Model; getenv(\"SKEIN_THREADS\")", "scripts/test": "", "docs/other.md": "# Two words\n"}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        good = "[o](docs/other.md#two-words) [w](https://x.y) `skein/nn/model.hpp` `scripts/test --all` `sk::Model` `std::span` `SKEIN_THREADS=2`\n"
        for text, sentence in [(good, ""), ("[o](docs/no.md)", "not there"), ("[o](docs/other.md#three)", "no such heading"), ("`scripts/no`", "not there"),
                               ("`skein/no.hpp`", "not there"), ("```sh\nscripts/none\n```\n", "not there"), ("`sk::Nodel`", "no header has"),
                               ("`SKEIN_TREADS`", "nothing reads")]:
            (root / "README.md").write_text(text)
            faults = check(root)
            if (faults != [] if not sentence else len(faults) != 1 or sentence not in faults[0]):
                wrong.append(f"planted {text!r}, wanted '{sentence}', found {faults}")
    return wrong


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "everything that the documentation names is there")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
