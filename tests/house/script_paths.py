#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A path that a script is given is seen from the folder in which it was called, though the script goes to that of the sources.

The scripts run in a copy, among programs that stand for CMake, mpirun and a compiler's headers.
Usage: script_paths.py <repository> | --self-test"""
import os
import pathlib
import subprocess
import sys
import tempfile

from stand_ins import copy_scripts, program

HEADERS = ["fmt/format.h", "xsimd/xsimd.hpp", "catch2/catch.hpp", "nlohmann/json.hpp"]
SCRIPTS = ["bench", "cuda.sh", "data", "demo", "gpu_first_half_hour", "test", "vendor", "paths.sh", "ranks.sh"]


def call(root, user, script, *arguments, **variables):
    environment = dict(os.environ, PATH=f"{root}/bin:{os.environ['PATH']}", CPATH=str(root / "headers"), SKEIN_DATA="sets") | variables
    done = subprocess.run(["bash", str(root / "scripts" / script), *arguments], cwd=user, env=environment, capture_output=True,
                          text=True, timeout=60, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def faults_of(root, user):
    """What the scripts below root do that was not asked for, called in the folder user."""
    faults = []
    said = call(root, user, "vendor", "--to", "mine")
    if not all((user / "mine/include" / header).exists() for header in HEADERS):
        faults.append(f"scripts/vendor --to mine does not fill mine of the folder in which it is called: {said.strip()}")
    said = call(root, user, "demo", "--data", "digits", "--save=run.skein", "--history", "/tmp/curve", "--epochs", "3")
    wanted = f"--data {user}/digits --save={user}/run.skein --history /tmp/curve --epochs 3 of {user}/sets"
    if wanted not in said:
        faults.append(f"scripts/demo hands on other paths than {wanted}: {said.strip()}")
    said = call(root, user, "bench", "none", "--json=figures.json", "--data", "digits", "--svg=plots/times", "--epochs", "3")
    wanted = f"--json {user}/figures.json --data {user}/digits --svg={user}/plots/times --epochs 3 of {user}/sets"
    if wanted not in said:
        faults.append(f"scripts/bench hands on other places than {wanted}: {said.strip()}")
    said = call(root, user, "data", "mnist")
    if f"copy the four files of mnist to {user}/sets/mnist" not in said:
        faults.append(f"scripts/data does not look at {user}/sets: {said.strip()}")
    said = call(root, user, "data", "mnist", SKEIN_DATA="")
    if f"copy the four files of mnist to {root}/data/mnist" not in said:
        faults.append(f"scripts/data does not say of {root}/data where it is: {said.strip()}")
    for script, *arguments in (("cuda.sh", "report"), ("test", "--cuda"), ("bench", "--cuda", "none"), ("gpu_first_half_hour", "2")):
        folders = {"OUT": f"results_of_{script}", "SKEIN_CUDA_BUILD": f"built_by_{script}"}
        said = call(root, user, script, *arguments, **folders)
        if not all((user / folder).is_dir() for folder in folders.values()):
            faults.append(f"scripts/{script} {' '.join(arguments)} does not see OUT and SKEIN_CUDA_BUILD from {user}: {said.strip()}")
    for given, wanted in (("environment/python", f"{user}/environment/python"), ("peer_python", "peer_python")):
        said = call(root, user, "bench", "--peer", SKEIN_PEER_PYTHON=given)
        if said.split()[-1:] != [wanted]:
            faults.append(f"scripts/bench --peer takes {given} for another than {wanted}: {said.strip()}")
    return faults


def check(repository):
    with tempfile.TemporaryDirectory() as folder:
        root, user = pathlib.Path(folder).resolve() / "sources", pathlib.Path(folder).resolve() / "user"
        user.mkdir()
        copy_scripts(repository, root, SCRIPTS)
        program(root / "scripts/setup", "exit 0\n")
        program(root / "bench/none.sh", 'echo "$@ of $SKEIN_DATA"\n')
        program(root / "bin/curl", "exit 22\n")
        program(root / "bin/cmake", "exit 0\n")
        program(root / "bin/nvcc", "exit 1\n")
        for python in (user / "environment/python", root / "bin/peer_python"):
            program(python, "exit 0\n")
        program(root / "bench/cuda/none.cu", "")
        program(root / "bin/mpirun", 'while [ "$1" != -n ]; do shift; done; shift 2; exec "$@"\n')
        program(root / "build/demo/examples/03_mnist_data_parallel", 'echo "$@ of $SKEIN_DATA"\n')
        for header in HEADERS:
            (root / "headers" / header).parent.mkdir(parents=True, exist_ok=True)
            (root / "headers" / header).write_text("// stands for a library\n")
        return faults_of(root, user)


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        repository = pathlib.Path(folder)
        for name in SCRIPTS:
            program(repository / "scripts" / name, 'cd "$(dirname "$0")/.."\nmkdir -p "$2"\necho "$@"\n')
        found = check(repository)
        return [] if len(found) == 11 else [f"wanted eleven faults of scripts that go elsewhere, found {found}"]


def main():
    faults = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "paths are seen from where a script is called")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
