#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins test files in one translation unit, so that what they share is compiled once. The names of two files do not meet: all headers come
first, then each file in a namespace of its own. A file that must not be in one (it opens namespace skein, declares extern "C", replaces
operator new, or has its includes under #if) stands outside, before the others.

With --programs each file has a main(): the joined program takes the file's name (without .cpp) and runs that one with the arguments
behind it.

Usage: unity.py [--programs] OUTPUT SOURCE... | --self-test"""
import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*(<[^>]*>|"[^"]*")', re.M)
OUTSIDE = re.compile(r'^\s*(?:inline\s+)?namespace\s+(?:skein|std)\b|^\s*extern\s+"C"|\boperator (?:new|delete)\b|^template\s*<>\s*'
                     r'(?:struct|class)\s+(?:skein|std|Catch)::', re.M)


def includes_under_if(text):
    """Is there an include between #if and #endif?"""
    depth = 0
    for line in text.splitlines():
        if re.match(r"\s*#\s*if", line):
            depth += 1
        elif re.match(r"\s*#\s*endif", line):
            depth -= 1
        elif depth > 0 and INCLUDE.match(line):
            return True
    return False


def stands_outside(text):
    return bool(OUTSIDE.search(text)) or includes_under_if(text)


def resolve(header, folder):
    """A quoted header beside its source, by its whole path: the joined file lies elsewhere."""
    beside = folder / header[1:-1]
    return f'"{beside.resolve()}"' if header[0] == '"' and beside.exists() else header


def behind(header, seen):
    """The headers of the library that a quoted header includes: they come before all that uses them, since a specialization that is
    declared after its first use is an error."""
    path = pathlib.Path(header.strip('"'))
    if header[0] != '"' or not path.is_absolute() or path in seen:
        return []
    seen.add(path)
    found = []
    for inner in INCLUDE.findall(path.read_text()):
        found += [inner] if inner[0] == "<" else behind(resolve(inner, path.parent), seen)
    return found


DISPATCH = """int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
%s  std::fprintf(stderr, "which program? %%s NAME, one of:%s\\n", argv[0]);
  return 2;
}
"""


def join_programs(sources):
    """The sources in one translation unit, whose main() calls the main() of the source that its first argument names."""
    text, calls, names = join(sources), "", ""
    for number, source in enumerate(map(pathlib.Path, sources)):
        body = source.read_text()
        main_of = re.search(r"^int main\(([^)]*)\)", body, re.M)
        if stands_outside(body) or not main_of:
            raise SystemExit(f"{source} cannot be joined: it needs a main(), and includes outside of #if")
        end = body.index("\n}\n", main_of.start())              # main() returns 0 at its end by itself, no other function does
        body = body[:end] + "\n  return 0;" + body[end:]
        body = body.replace(main_of[0], f"int main_of_{number}({main_of[1]})")
        text = text.replace(f'#include "{source}"\n}}', f'#line 1 "{source}"\n{body}}}')
        call = f"file_{number}::main_of_{number}({'argc - 1, argv + 1' if main_of[1] else ''})"
        calls += f'  if (name == "{source.stem}") return {call};\n'
        names += f" {source.stem}"
    return "#include <cstdio>\n#include <string_view>\n" + text + DISPATCH % (calls, names)


def join(sources):
    headers, quoted, outside, inside, seen = {}, {}, [], [], set()
    for number, source in enumerate(sources):
        source = pathlib.Path(source)
        text = source.read_text()
        if stands_outside(text):
            outside.append(f'#include "{source}"')
            continue
        for header in INCLUDE.findall(text):
            (headers if header[0] == "<" else quoted)[resolve(header, source.parent)] = None
            headers.update(dict.fromkeys(behind(resolve(header, source.parent), seen)))
        inside.append(f'namespace file_{number} {{\n#include "{source}"\n}}')
    includes = [f"#include {header}" for header in [*headers, *quoted]]
    return "\n".join(["// Made by tests/support/unity.py."] + outside + includes + inside) + "\n"


def self_test():
    faults = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        (folder / "near.hpp").write_text("#pragma once\n#include <array>\n")
        (folder / "a.cpp").write_text('#include <vector>\n#include "near.hpp"\nnamespace { int f() { return 1; } }\n')
        (folder / "b.cpp").write_text('#include <vector>\nnamespace { int f() { return 2; } }\n')
        (folder / "c.cpp").write_text("namespace skein::detail {}\n")
        (folder / "d.cpp").write_text("#if FAR\n#include <far.hpp>\n#endif\n")
        text = join([folder / name for name in ("a.cpp", "b.cpp", "c.cpp", "d.cpp")])
        (folder / "one.cpp").write_text("#include <vector>\nint main() {\n  f();\n}\n")
        (folder / "two.cpp").write_text("#include <vector>\nint main(int argc, char** argv) {\n  return argc;\n}\n")
        programs = join_programs([folder / "one.cpp", folder / "two.cpp"])
    for line in ['namespace file_1 {\n#line 1 ', 'int main_of_0() {\n  f();\n  return 0;\n}\n',
                 '  if (name == "one") return file_0::main_of_0();',
                 '  if (name == "two") return file_1::main_of_1(argc - 1, argv + 1);']:
        if line not in programs:
            faults.append(f"joined programs lack {line}:\n{programs}")
    wanted = ["// Made by tests/support/unity.py.", f'#include "{folder}/c.cpp"', f'#include "{folder}/d.cpp"', "#include <vector>",
              "#include <array>", f'#include "{folder}/near.hpp"', "namespace file_0 {", f'#include "{folder}/a.cpp"', "}", "namespace file_1 {",
              f'#include "{folder}/b.cpp"', "}", ""]
    if text != "\n".join(wanted):
        faults.append(f"wanted\n{wanted}\ngot\n{text}")
    if stands_outside("#if A\n#define B\n#endif\n#include <c>\n"):
        faults.append("an include behind #endif was taken for one under #if")
    if not stands_outside("void* operator new(std::size_t n);\n"):
        faults.append("operator new was put into a namespace")
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "files are joined without meeting")
        return 1 if faults else 0
    programs = sys.argv[1] == "--programs"
    output, *sources = sys.argv[2 if programs else 1:]
    text, path = (join_programs if programs else join)(sources), pathlib.Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
