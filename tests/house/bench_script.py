#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/bench starts a bench of several ranks on as many, with what the caller says to Open MPI, gives a bench the values of its options
though they be names of benches, adds the figures of all to the file of --json, and makes the peer's environment again where it could not be made. bench/first_hour.py names its rows, and a bench tells its Report which
parts --only may name. A bench that starts its experiment more than once gives each start the caller's flags that it takes, and pictures of its own.

The script runs in a copy, among programs that stand for CMake, mpirun, Python and the benches.
Usage: bench_script.py <repository> | --self-test"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from stand_ins import copy_scripts, program

COPIES = "OMPI_MCA_btl_vader_single_copy_mechanism"
BENCH = f"""echo "${{0##*/}} on ${{RANKS:-1}} ranks: $*"
echo "copies by ${{{COPIES}:-nothing}}"
while [ $# -gt 0 ]; do
  if [ "$1" = --json ]; then file=$2; fi                         # the last of several, as in the benches
  shift
done
if [ -n "$file" ]; then echo "${{0##*/}}" >>"$file"; fi
"""
PYTHON = """case "$*" in
  *"-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *"-m pip"*|*torch*) echo "no network here" >&2; exit 1 ;;
esac
"""


def call(root, *arguments, **variables):
    environment = {key: value for key, value in os.environ.items() if key not in ("SKEIN_PEER_PYTHON", "SKEIN_DATA")}
    environment.update(variables, PATH=f"{root}/bin:{os.environ['PATH']}", CUDA_HOME="/nowhere")
    done = subprocess.run(["bash", str(root / "scripts/bench"), *arguments], cwd=root, env=environment, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def faults_of(root):
    faults = []
    for source in sorted((root / "bench").glob("*.cpp")):
        text = source.read_text()
        wanted = re.search(r"start it on (\d+) ranks", text)
        if not wanted and "MpiComm world{argc, argv}" not in text:
            continue
        said = call(root, source.stem, SKEIN_PEER_PYTHON="/bin/true")
        found = re.search(r"on (\d+) ranks", said)
        if not found or int(found[1]) < 2 or (wanted and found[1] != wanted[1]):
            faults.append(f"scripts/bench {source.stem} does not start it on {wanted[1] if wanted else 'several'} ranks: {said.strip()}")
    for source in sorted((root / "bench").glob("*.cpp")):
        text = source.read_text()
        asked = set(re.findall(r'\.wants\("(\w+)"\)', text))
        told = re.search(r'Report report\("\w+", (?:bench::)?options\(argc, argv\), \{([^}]*)\}\)', text)
        if asked != set(re.findall(r'"(\w+)"', told[1] if told else "")):
            faults.append(f"{source.name} has the parts {sorted(asked)} and does not tell its Report of them, which refuses --only by them")
    for arguments, wanted in ((["kfac", "--quick", "--only", "resnet"], ["kfac on 1 ranks: --quick --only resnet"]),
                              (["--quick", "kfac", "resnet"], ["kfac on 1 ranks: --quick", "resnet on 1 ranks: --quick"])):
        said = call(root, *arguments, SKEIN_PEER_PYTHON="/bin/true")
        if [line for line in said.splitlines() if "ranks:" in line] != wanted:
            faults.append(f"scripts/bench {' '.join(arguments)} is not {wanted}: {said.strip()}")
    for value, wanted in ((None, "none"), ("cma", "cma")):
        said = call(root, "shared_memory", SKEIN_PEER_PYTHON="/bin/true", **({COPIES: value} if value else {}))
        if f"copies by {wanted}" not in said:
            faults.append(f"scripts/bench with {COPIES}={value} does not start ranks with {wanted}: {said.strip()}")
    call(root, "all", "--quick", "--json", "figures.json", SKEIN_PEER_PYTHON="/bin/true")
    figures = root / "figures.json"
    if (figures.read_text().split() if figures.exists() else []) != sorted(source.stem for source in (root / "bench").glob("*.cpp")):
        faults.append("scripts/bench all --json FILE does not add the figures of every bench to the file")
    said = call(root, "--peer")
    if (root / "build/peer-venv").exists() or "no peer" not in said:
        faults.append(f"scripts/bench keeps a peer's environment that could not be made: {said.strip()}")
    return faults


def check(repository):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        copy_scripts(repository, root, ("bench", "paths.sh", "ranks.sh"))
        program(root / "scripts/setup", "exit 0\n")
        program(root / "bin/cmake", "exit 0\n")
        program(root / "bin/mpirun", 'while [ "$1" != -n ]; do shift; done; export RANKS=$2; shift 2; exec "$@"\n')
        program(root / "bin/python3", PYTHON)
        (root / "bench").mkdir()
        for source in (repository / "bench").glob("*.cpp"):
            shutil.copy(source, root / "bench")
            program(root / "build/bench/bench" / source.stem, BENCH)
        return faults_of(root)


def faults_of_rows(repository):
    """A row that bench/first_hour.py does not have is refused, with those that it has, before anything is built."""
    done = subprocess.run([sys.executable, str(repository / "bench/first_hour.py"), "--rows", "csv,x"], capture_output=True, text=True,
                          timeout=60)
    wanted = "there is no row 'x'; --rows takes some of csv, auc"
    return [] if done.returncode == 2 and wanted in done.stderr else [f"bench/first_hour.py --rows csv,x does not say {wanted}: {done.stderr}"]


# What a bench that is an experiment is called with, and a pattern of each of its starts: "RANKS: FLAGS".
STARTS = (
    ("how_often --ranks 2 --latency 5 --slow_epochs=3 --bandwidth=2 --lr 0.1 --svg x",
     ["^1: --ranks 4 --svg x --ranks 2 --latency 5 --slow_epochs=3 --bandwidth=2 --lr 0.1$",
      "^2: --processes --svg x_processes --seeds 1 --lr 0.1$"]),
    ("parameter_server --workers=8 --latency 5 --svg=x",
     ["^1: --workers 4 --svg x --workers=8 --latency 5$", "^10: --processes --workers 4 --seeds 1 --svg x_processes --workers=8 --simulate 0$"]),
    ("parameter_server --simulate 8 --svg=",
     ["^1: --workers 4 --simulate 8$", "^6: --processes --workers 4 --seeds 1 --simulate 0$"]),
    ("pipeline --data there --network mlp --svg x --quick --json y",
     ["^1: .*--svg x_dilated --json y --data there$", "^1: --threads-as-ranks 2 --svg x_threads --json y --rounds 15 --data there --network mlp$",
      "^2: --svg x --samples 60000 --json y --rounds 15 --data there --network mlp$"]),
    ("pipeline", ["--svg build/pipeline_dilated$", "--svg build/pipeline_threads$", "^2: --svg build/pipeline --samples 60000 --epochs 2$"]),
    ("mnist_over_mpi --svg x --epochs 3",
     ["^4: --network logistic .*--svg x_logistic --epochs 3$", "^4: --network lenet .*--svg x_lenet --epochs 3$"]),
    ("mnist_over_mpi --network lenet", ["^4: --network lenet .*--svg build/mnist_over_mpi_lenet$"]),
    ("large_batch --method none", ["^1: --memory 1024 --method none$"]),
    ("large_batch", ["^1: --svg build/large_batch --epochs 10 "]),
)


def check_starts(repository):
    """The benches that are experiments, among programs that stand for these and for mpirun."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        copy_scripts(repository, root, ("ranks.sh",))
        (root / "bench/support").mkdir(parents=True)
        for source in [*(repository / "bench").glob("*.sh"), *(repository / "bench/support").glob("*.sh")]:
            text = source.read_text()
            (root / source.relative_to(repository)).write_text(text)
            for name in re.findall(r"^experiment_begin (\w+)", text, re.M):
                program(root / "build/bench/examples/experiments" / name, 'echo "${RANKS:-1}: $*"\n')
        program(root / "bin/cmake", "exit 0\n")
        program(root / "bin/mpirun", 'while [ "$1" != -n ]; do shift; done; export RANKS=$2; shift 2; exec "$@"\n')
        for called, wanted in STARTS:
            name, *arguments = called.split()
            done = subprocess.run(["bash", str(root / f"bench/{name}.sh"), *arguments], env=dict(os.environ, PATH=f"{root}/bin:{os.environ['PATH']}"),
                                  capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
            starts = [line for line in done.stdout.splitlines() if re.match(r"\d+: ", line)]
            if len(starts) != len(wanted) or not all(re.search(one, start) for one, start in zip(wanted, starts)):
                faults.append(f"bench/{called}: its starts are {starts}, and not {wanted}; {done.stderr.strip()}")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        repository = pathlib.Path(folder)
        program(repository / "scripts/bench", 'mkdir -p build/peer-venv\nfor name; do echo "$name on 1 ranks: $*"; done\n')
        program(repository / "scripts/ranks.sh", "")
        program(repository / "scripts/paths.sh", "")
        (repository / "bench").mkdir()
        (repository / "bench/two.cpp").write_text('std::puts("two: start it on 2 ranks"); report.wants("half");\n')
        found = check(repository)
        (repository / "bench/large_batch.sh").write_text("echo 1: --method none\n")
        starts = check_starts(repository)
        return [] if len(found) == 8 and len(starts) == len(STARTS) else [f"wanted eight faults and {len(STARTS)}, found {found}, {starts}"]


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else [
        *check(pathlib.Path(sys.argv[1])), *faults_of_rows(pathlib.Path(sys.argv[1])), *check_starts(pathlib.Path(sys.argv[1]))]
    print("\n".join(faults) if faults else "scripts/bench starts benches as they are to be started")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
