# SPDX-License-Identifier: Apache-2.0
"""scripts/cuda.sh without a GPU: a build folder of shell scripts stands for the programs. One passes, one fails, one hangs and one breaks its
device; each has a line of results as soon as it ends, and what has passed is not run again.
Usage: cuda_script.py ROOT"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PROGRAM = """#!/usr/bin/env bash
case "$*" in *--list-tags*) printf '  1  [#good_test]\\n  1  [#gemm_test]\\n  1  [#bad_test]\\n  1  [#slow_test]\\n  1  [#broken_test]\\n'; exit 0 ;; esac
echo "$*" >>"$(dirname "$0")/started"
case "$*" in
  *slow*) sleep 30 ;;
  *broken*) echo 'stopped in test case 2, "x": the device answers everything with cudaErrorIllegalAddress'; exit 70 ;;
  *bad*) echo 'test cases:  2 | 1 passed | 1 failed'; exit 1 ;;
  *) echo 'All tests passed (11 assertions in 3 test cases)' ;;
esac
"""

BENCH = """#!/usr/bin/env bash
file=""
while [ $# -gt 1 ]; do if [ "$1" = --json ]; then file=$2; fi; shift; done
if [ -e "$(dirname "$0")/hangs" ]; then sleep 30; fi
echo '{"bench": "gemm", "metric": "a product", "unit": "ms", "ours": 1.0}' >>"$file"
"""


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def names_exist(root):
    """The files of tests that the scripts name are there."""
    there = {path.stem for path in (root / "tests").rglob("cuda/*_test.cu")}
    for script in ("cuda.sh", "gpu_first_half_hour"):
        named = set(re.findall(r"\b[a-z0-9_]+_test\b", (root / "scripts" / script).read_text())) - {"comm_test", "stage_test"}
        assert named and named <= there, f"scripts/{script} names {sorted(named - there)}, which are no tests"


def shared_memory_is_checked(root):
    """Kernels whose threads share memory are looked at for races, but for convolutions: their tests search cuDNN's plans for minutes."""
    there = {path.stem for path in (root / "tests").rglob("cuda/*_test.cu")}
    users = {path.stem for path in (root / "include/skein").rglob("cuda/*.hpp") if "for_each_block(" in path.read_text()}
    wanted = {name + "_test" for name in users if not name.startswith("conv")} & there
    listed = re.search(r"row=\(([^)]*)\)[^\n]*\n *pass sanitize_racecheck", (root / "scripts/cuda.sh").read_text())
    missing = wanted - set(listed.group(1).split())
    assert wanted and not missing, f"scripts/cuda.sh: racecheck does not look at {sorted(missing)}, whose kernels share memory"


def main():
    root = pathlib.Path(sys.argv[1])
    names_exist(root)
    shared_memory_is_checked(root)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        build, out = folder / "build", folder / "out"
        executable(build / "tests/test_cuda", PROGRAM)
        executable(build / "skein_on_gpu", '#!/bin/sh\nshift\nexec "$@"\n')
        environment = dict(os.environ, OUT=str(out), SKEIN_CUDA_BUILD=str(build), SKEIN_PEER_PYTHON="/bin/true")

        def run(*arguments, script="cuda.sh"):
            return subprocess.run([str(root / "scripts" / script), *arguments], env=environment, capture_output=True, text=True, timeout=50)

        def results():
            file = out / "cuda-results.txt"
            return [line.split(" ", 4) for line in file.read_text().splitlines()] if file.exists() else []

        began = time.monotonic()
        first = run("test", "--limit", "2")
        assert time.monotonic() - began < 20, "a program that hangs was not cut"
        assert first.returncode != 0, first.stdout + first.stderr
        found = {line[1]: line for line in results() if line[0] == "test"}
        assert set(found) == {"good_test", "gemm_test", "bad_test", "slow_test", "broken_test"}, found
        assert found["good_test"][2] == "0" and "3 test cases" in found["good_test"][4], found
        assert found["bad_test"][2] == "1" and found["bad_test"][4] == "test cases: 2 | 1 passed | 1 failed", found
        assert found["slow_test"][2] == "124" and found["slow_test"][4] == "cut after 2 s", found
        assert found["broken_test"][2] == "70" and "cudaErrorIllegalAddress" in found["broken_test"][4], found
        assert results()[-1][1] == "slow_test", "results are not written in the order in which programs end"
        report = json.loads((out / "cuda-report.json").read_text())
        assert report["status"] == "failed" and report["test_cuda"].startswith("2 passed (6 test cases), 3 FAILED"), report
        assert "cut after 2 s" in (out / "cuda-report.md").read_text()

        started = (build / "tests/started").read_text()
        again = run("test", "--limit", "2")
        more = (build / "tests/started").read_text()[len(started):]
        assert "good_test" not in more and "gemm_test" not in more, "what has passed was run again:\n" + more
        assert "bad_test" in more and "2 passed before" in again.stdout, again.stdout

        count = len(results())
        over = run("test", "--within", "0", "bad_test")
        assert results()[count:] and "not run" in results()[-1][4], over.stdout

        chosen = run("test", "good_test", "no_such_test")
        assert "1 passed before" in chosen.stdout and "no such file of tests" in chosen.stdout, chosen.stdout

        executable(build / "tests/test_cuda", PROGRAM.replace("sleep 30", "true"))
        part = run("2", script="gpu_first_half_hour")
        assert "test: 3 passed" in part.stdout and "bad_test" in part.stdout, part.stdout + part.stderr
        assert part.returncode != 0 and run("5", script="gpu_first_half_hour").returncode == 2

        executable(build / "bench/cuda/gemm", BENCH)
        for figures in (1, 1, 0):
            if figures == 0:
                (build / "bench/cuda/hangs").touch()
            measured = run("bench", "--built", "--limit", "1", "gemm")
            text = (out / "cuda-bench.jsonl").read_text()
            assert text.count("a product") == figures, f"{figures} figures were measured, the report has:\n{text}{measured.stdout}"

        executable(build / "skein_on_gpu", "#!/bin/sh\nexit 77\n")
        none = run("test")
        assert none.returncode == 77 and "no GPU" in none.stdout, none.stdout
        executable(folder / "bin/nvidia-smi", "#!/bin/sh\necho 'B200, 580, 10.0, 1 MiB'\necho 'H200, 580, 9.0, 1 MiB'\necho 'H200, 580, 9.0, 1 MiB'\n")
        executable(folder / "bin/nvcc", "#!/bin/sh\nexit 0\n")
        executable(folder / "bin/cmake", "#!/bin/sh\nexit 1\n")
        environment["PATH"] = f"{folder}/bin:{environment['PATH']}"
        both = run("build")
        assert "build: for 90;100 (" in both.stdout, "architectures of the GPUs that are here are not in their order:\n" + both.stdout

        wrong = run("test", "--limt", "60")
        assert wrong.returncode == 2 and "there is no option --limt" in wrong.stderr, wrong.stdout + wrong.stderr
        wrong = run("tests")
        assert wrong.returncode == 2 and "what is 'tests'" in wrong.stderr, wrong.stderr
    print("scripts/cuda.sh: results as they come, limits, what has passed is kept")


if __name__ == "__main__":
    main()
