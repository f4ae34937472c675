#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls one compiler on one file, without linking: a header on its own (--header; several: as if alone in chains, see chains.py; nvcc gets
all in one source), a source
(--source), or a wrong program (--wrong), which must fail with one error that says its sentence in at most 20 lines, and whose twin must
compile (unless --without-twin). --twins compiles the twins of many in one source, each in a namespace of its own.

A wrong program begins with `// expect: <sentence>`, or with `// expect after the compiler's own: <sentence>` where the language itself
refuses it and ours may only be the last word, or with `// expect of clang++, as a warning: <sentence>`, where -Werror makes the error of
it and the other compilers have no such warning; it has its wrong lines under `#ifndef SKEIN_TWIN` and the right ones in the
other branch. --precompile makes a precompiled header of what the library includes of others, and of the library's headers --with, --precompiled
gives it to a call: a third of the time. (What a source forgets to include of that is then not found: the long checks do without.) --compiled takes
the form of the library whose bodies are elsewhere. --self-test tries the runner on programs that it must refuse."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import chains
import unity

MAX_LINES = 20
TRAIL = 2    # lines that a trail of includes counts for where they are precompiled: the way is then longer than the program's own


class Compiler:
    def __init__(self, path, flags, native=False, precompiled=None, compiled=False):
        self.path, self.flags, self.native, self.precompiled, self.compiled = path, flags, native, precompiled, compiled
        self.nvcc = os.path.basename(path).startswith("nvcc")
        self.clang = os.path.basename(path).startswith("clang")

    def run(self, source, *more, strict=False, whole=True):
        """Compiles without linking; returns (exit status, output). Not whole: nvcc's device side only, a third of the time."""
        if self.nvcc:
            with tempfile.TemporaryDirectory() as folder:
                command = [self.path, "-std=c++20", "--expt-relaxed-constexpr", "-arch=sm_80", "-x", "cu",
                           "-c" if whole else "-ptx", "-o", os.path.join(folder, "out")]
                if self.flags:
                    command += ["--options-file", self.flags]
                return self._call(command + list(more) + [source])
        command = [self.path, "-std=c++20", "-fdiagnostics-color=never"] + ([] if "-o" in more else ["-fsyntax-only"])
        if self.clang:
            command += ["-fconstexpr-steps=4000000"]               # as skein::skein says
        if self.native:
            command += ["-march=native"]
        if self.precompiled:
            command += ["-include-pch", self.precompiled] if self.clang else ["-Winvalid-pch", "-include", self.precompiled.removesuffix(".gch")]
        if self.compiled:
            command += ["-DSKEIN_COMPILED=1"]
        if strict:
            command += ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        if self.flags:
            command += ["@" + self.flags]
        return self._call(command + list(more) + [source])

    @staticmethod
    def _call(command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout


def precompile(compiler, to, headers):
    """What the library's headers include of others, those of GPUs aside, and these headers of its own, as a precompiled header. Boost's are
    left out: where its archives are seen, a type that ours do not know gets their error."""
    include = pathlib.Path(__file__).resolve().parents[2] / "include/skein"
    files = [file for file in sorted(include.rglob("*.[hi]pp")) if not {"cuda", "nccl"} & set(file.parts) and file.name != "xtensor.hpp"]
    names = sorted({name for file in files for name in re.findall(r"^#include <([^>]+)>", file.read_text(), re.M)
                    if not name.startswith("boost/")})
    os.makedirs(os.path.dirname(to), exist_ok=True)
    header = to.removesuffix(".pch").removesuffix(".gch")
    pathlib.Path(header).write_text("".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in names) +
                                    "".join(f"#include <{name}>\n" for name in headers))
    # Templates that it uses already are clang's to instantiate there, not in each source again; g++ cannot, so it gets few headers.
    more = ["-fpch-instantiate-templates"] if compiler.clang else []
    status, text = compiler.run(header, "-xc++-header", "-o", to, *more)
    return [] if status == 0 else [text]


def errors_in(text):
    return [line for line in text.splitlines() if re.search(r"(?:^|[:) ])(?:fatal )?error\b\s*(?:#\S+)?:", line)]


def warnings_of_headers(text):
    """What nvcc, whose -Werror would be of all headers, says of the library's own."""
    return [line for line in text.splitlines() if re.search(r"\bskein/[^ (]+\(\d+\): warning", line)]


def tidy(text):
    """A compiler's output without the lines that only count ("1 error generated.") or are empty."""
    counts = re.compile(r"^\d+ (?:error|warning)s?(?: and \d+ \w+)? generated|^\d+ errors? detected in the compilation")
    return [line for line in text.splitlines() if line.strip() and not counts.match(line)]


def without_trail(lines):
    return [line for line in lines if not re.match(r"In file included from |\s+from .*[:,]$", line)]


def check_wrong(compiler, path, twin=True):
    """Returns the faults of a wrong program, as sentences; none where it is as it should be."""
    first = pathlib.Path(path).read_text().splitlines()[:1]
    match = re.match(r"// expect(?P<last> after the compiler's own)?(?P<warning> of clang\+\+, as a warning)?: (?P<sentence>.+)", first[0] if first else "")
    if not match:
        return [f"{path}: the first line must be `// expect: <sentence>`"]
    sentence, last, faults = match["sentence"].strip(), match["last"], []
    if match["warning"] and not compiler.clang:
        return check_twins(compiler, [path]) if twin else []
    status, text = compiler.run(path, *(["-Werror"] if match["warning"] else []))
    lines, errors = tidy(text), errors_in(text)
    if status == 0:
        faults.append("the wrong program compiles")
    else:
        if last and sum("static assertion" in line or "static_assert" in line for line in errors) != 1:
            faults.append("of the library's own sentences it prints not one")
        if not last and len(errors) != 1:
            faults.append(f"it prints {len(errors)} errors, not one")
        count = len(lines) if not compiler.precompiled else min(len(lines), len(without_trail(lines)) + TRAIL)
        if count > MAX_LINES:
            faults.append(f"it prints {count} lines, more than {MAX_LINES}")
        if sentence not in " ".join(errors[-1:] if last else errors):
            faults.append(f"its error does not say: {sentence}")
    if faults:
        faults.append("the compiler says:\n" + "\n".join(lines[:60]))
    return faults + (check_twins(compiler, [path]) if twin else [])


def check_twins(compiler, paths):
    """The twins of wrong programs, all in one source: what they include is compiled once."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(unity.join(os.path.abspath(path) for path in paths))
        source.flush()
        status, text = compiler.run(source.name, "-DSKEIN_TWIN", whole=False)
    return [] if status == 0 else ["the twin does not compile:\n" + "\n".join(tidy(text)[:60])]


def self_test(compiler):
    """Programs that the runner must accept (no word) or refuse (the word of the fault)."""
    right = "static_assert(true);"
    rule = 'template <class T> struct Rule { static_assert(sizeof(T) > 99, "put Flatten before it"); };\n'
    overloads = "\n".join(f"struct A{i} {{}}; void f(A{i});" for i in range(30)) + "\n"
    cases = {
        "good": ("// expect: put Flatten before it\n", rule + "Rule<int> wrong;", right, None),
        "compiles": ("// expect: put Flatten before it\n", right, right, "the wrong program compiles"),
        "other_sentence": ("// expect: put Flatten after it\n", rule + "Rule<int> wrong;", right, "does not say"),
        "two_errors": ("// expect: put Flatten before it\n", rule + "Rule<int> a; Rule<char> b;", right, "2 errors"),
        "bad_twin": ("// expect: put Flatten before it\n", rule + "Rule<int> wrong;", "nonsense;", "the twin does not compile"),
        "long": ("// expect: no matching function\n", overloads + "void g() { f(nullptr); }", right, "more than 20"),
        "last_word": ("// expect after the compiler's own: put Flatten before it\n", "nonsense; " + rule + "Rule<int> wrong;", right, None),
        "not_the_last": ("// expect after the compiler's own: put Flatten before it\n", rule + "Rule<int> wrong; nonsense;", right, "does not say"),
        "two_of_ours": ("// expect after the compiler's own: put Flatten before it\n", rule + "Rule<int> a; Rule<char> b;", right, "not one"),
        "warning": ("// expect of clang++, as a warning: unused\n", "#warning unused", right, None),
        "no_warning": ("// expect of clang++, as a warning: unused\n", right, right, "the wrong program compiles" if compiler.clang else None),
        "no_sentence": ("", rule + "Rule<int> wrong;", right, "the first line must be"),
    }
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (first, bad, good, fault) in cases.items():
            path = os.path.join(folder, name + ".cpp")
            pathlib.Path(path).write_text(f"{first}#ifndef SKEIN_TWIN\n{bad}\n#else\n{good}\n#endif\n")
            said = "\n".join(check_wrong(compiler, path))
            if name == "long" and compiler.nvcc:
                continue                                                            # it lists no candidates
            if (fault is None and said) or (fault is not None and fault not in said):
                wrong.append(f"case {name}: wanted {fault or 'nothing'}, got: {said or 'nothing'}")
        header = os.path.join(folder, "needs.hpp")
        pathlib.Path(header).write_text("#pragma once\nstd::string name();\n")
        good, bad = (os.path.join(folder, name + ".cpp") for name in ("good", "bad_twin"))
        if check_twins(compiler, [good, good]) or not check_twins(compiler, [good, bad]):
            wrong.append("of two twins the wrong one was accepted, or the right ones were not")
        if check_header(compiler, header) == []:
            wrong.append("a header that includes too little was accepted")
        os.mkdir(os.path.join(folder, "skein"))
        warned = os.path.join(folder, "skein", "warned.hpp")
        pathlib.Path(warned).write_text("#pragma once\ninline void f() {\n#pragma GCC unroll 4\n  for (int i = 0; i < 4; ++i) {}\n}\n")
        if compiler.nvcc and "nvcc warns" not in " ".join(check_header(compiler, warned)):
            wrong.append("a header of which nvcc warns was accepted")
        fine, after = os.path.join(folder, "fine.hpp"), os.path.join(folder, "after.hpp")
        pathlib.Path(fine).write_text("#pragma once\nstruct Fine {};\n")
        pathlib.Path(after).write_text("#pragma once\nFine f();\n")
        if not compiler.nvcc and "after.hpp" not in " ".join(check_headers(compiler, [fine, after])):
            wrong.append("a header that needs the one before it was accepted")
        wrong += chains.self_test(folder)
    return wrong


def check_header(compiler, *headers):
    """A header on its own, or several together, included twice. What is beside the houses (skein.hpp) brings everything, and goes the
    whole way."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write("".join(f'#include "{header}"\n' for header in headers + headers))
        source.flush()
        status, text = compiler.run(source.name, strict=True, whole=any(header.count("/") < 2 for header in headers))
    if status != 0:
        return [f"{' '.join(headers)}: does not compile on its own:\n{text}"]
    return [f"{' '.join(headers)}: nvcc warns of it, in every program of a user:\n{text}"] if compiler.nvcc and warnings_of_headers(text) else []


def check_headers(compiler, headers):
    """Each of several on its own, in chains. Where one of a chain fails, each is tried alone, so that the right one is named."""
    root = pathlib.Path(__file__).resolve().parents[2] / "include"
    faults = []
    made = chains.chains(headers, root, compiler.compiled)
    for chain in made:
        together = check_header(compiler, *chain)
        if together:
            faults += [fault for header in chain for fault in check_header(compiler, header)] or together
    print(f"{len(headers)} headers in {len(made)} sources")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--flags", help="a file of compiler options, one a line")
    parser.add_argument("--without-twin", action="store_true", help="of a wrong program: its twin is compiled elsewhere")
    parser.add_argument("--native", action="store_true", help="for the instruction set of this machine")
    parser.add_argument("--with", nargs="+", dest="headers", default=[], help="headers of the library that --precompile takes in too")
    parser.add_argument("--compiled", action="store_true", help="without the bodies that skein::compiled has")
    parser.add_argument("--precompiled", help="what --precompile has made, with the same compiler and flags")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--precompile", metavar="FILE", help="FILE.pch for clang++, FILE.gch for g++")
    what.add_argument("--header", nargs="+")
    what.add_argument("--source")
    what.add_argument("--wrong")
    what.add_argument("--twins", nargs="+")
    what.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    compiler = Compiler(options.compiler, options.flags, options.native, options.precompiled, options.compiled)
    if options.self_test:
        faults = self_test(compiler)
    elif options.precompile:
        faults = precompile(compiler, options.precompile, options.headers)
    elif options.header:
        several = len(options.header) > 1 and not compiler.nvcc
        faults = check_headers(compiler, options.header) if several else check_header(compiler, *options.header)
    elif options.wrong:
        faults = check_wrong(compiler, options.wrong, not options.without_twin)
    elif options.twins:
        faults = check_twins(compiler, options.twins)
    else:
        status, text = compiler.run(options.source)
        faults = [] if status == 0 else [text]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
