#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps what libFuzzer has found to reach new code: merges the corpora of a build with SKEIN_FUZZ into corpus/, one input a line.

Usage: keep.py BUILD [TARGET...]     (BUILD: the folder of scripts/test --all, build/fuzz; targets: all that it has)

An input is kept where it reaches an edge of the code that no shorter one reaches; how often an edge is passed does not count, so that a
target keeps hundreds of inputs, not tens of thousands. The files are of hexadecimal digits: a byte of an input may be any.
Errors: exits with 1 where a target finds a fault in the corpus, and names it."""
import pathlib
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path(__file__).parent / "corpus"


def keep(build, target):
    found = build / f"run/fuzz.{target}/corpus"
    with tempfile.TemporaryDirectory() as folder:
        merge = [f"{build}/tests/fuzz_{target}", "-merge=1", "-use_counters=0", "-max_len=4096", "-rss_limit_mb=1024", folder, str(found)]
        done = subprocess.run(merge, capture_output=True, text=True, errors="replace")
        inputs = sorted((file.read_bytes() for file in pathlib.Path(folder).iterdir()), key=lambda bytes: (len(bytes), bytes))
        if done.returncode or not inputs or "CRASH" in done.stderr:
            print(f"{target}: {' '.join(merge)} ended with {done.returncode}\n{done.stderr[-2000:]}")
            return 1
    (CORPUS / f"{target}.hex").write_text("".join(bytes.hex() + "\n" for bytes in inputs))
    print(f"{target}: {len(inputs)} of {len(list(found.iterdir()))} inputs kept, {sum(map(len, inputs))} bytes")
    return 0


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    build = pathlib.Path(sys.argv[1]).resolve()
    targets = sys.argv[2:] or sorted(folder.name.removeprefix("fuzz.") for folder in build.glob("run/fuzz.*"))
    CORPUS.mkdir(exist_ok=True)
    return max([keep(build, target) for target in targets], default=2)


if __name__ == "__main__":
    sys.exit(main())
