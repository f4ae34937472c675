#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of examples/slurm, given to a real Slurm that this starts on this machine (cluster.py) and ends again. Each is submitted as a
user would, with fewer cores than it asks for; only gpus.sh is merely parsed, since there is no GPU. Skipped where Slurm is not installed.
The signal before the time limit comes by scancel: Slurm itself looks at limits every half minute.

Arguments: the repository, the program 11_mnist_over_mpi, and the program and the name of the cookbook's requeue."""
import os
import pathlib
import re
import signal
import sys
import tempfile
import time

from cluster import Cluster, SlurmError, missing

DEADLINE = 90                                                  # seconds: then everything ends, with a failure
WHERE = r'echo "rank $OMPI_COMM_WORLD_RANK: $SKEIN_THREADS threads on $(sed -n "s/Cpus_allowed_list:\s*/cores /p" /proc/self/status)"'

UNBOUND = "srun: cluster configuration lacks support for cpu binding\n"   # --hint asks for it; this Slurm has no TaskPlugin


def expect(condition, text):
    if not condition:
        raise SlurmError(text)


def ended(slurm, number, log):
    """What a job that has ended well has printed."""
    jobs = slurm.wait_for_end(number)
    text = log.read_text(encoding="utf-8") if log.exists() else "(no output)"
    expect(all(job["JobState"] == "COMPLETED" for job in jobs), f"job {number}: {[job['JobState'] for job in jobs]}\n{text}")
    return text


def one_node(slurm, scripts, training):
    """Each rank has its own cores, and a thread for each."""
    size = ["--ntasks-per-node=2", "--cpus-per-task=1"]
    job = slurm.submit(*size, scripts / "one_node.sh", "bash", "-c", WHERE)
    text = ended(slurm, job, slurm.folder / f"training-{job}.log")
    expect(len(set(re.findall(r"^rank [01]: 1 threads on cores (\d+)$", text, re.M))) == 2, text)
    job = slurm.submit(*size, scripts / "one_node.sh", *training, "--epochs", "1")
    text = ended(slurm, job, slurm.folder / f"training-{job}.log")
    expect("2 ranks, from step 0 to 40" in text, text)


def several_nodes(slurm, scripts, training):
    """A rank on each of two nodes. Data on a node's own disk, gone afterwards: on one node, since both have one disk."""
    size = ["--ntasks-per-node=1", "--cpus-per-task=1"]
    slurm.environment.pop("SKEIN_DATA", None)
    job = slurm.submit("--nodes=2", *size, scripts / "several_nodes.sh", *training, "--epochs", "1")
    text = ended(slurm, job, slurm.folder / f"training-{job}.log")
    expect("2 ranks, from step 0 to 40" in text, text)
    (slurm.folder / "data").mkdir()
    (slurm.folder / "data/of_the_training").touch()
    (slurm.folder / "disk").mkdir()
    slurm.environment |= {"SKEIN_DATA": str(slurm.folder / "data"), "TMPDIR": str(slurm.folder / "disk")}
    job = slurm.submit("--nodes=1", *size, scripts / "several_nodes.sh", "bash", "-c", 'ls "$SKEIN_DATA"')
    text = ended(slurm, job, slurm.folder / f"training-{job}.log").replace(UNBOUND, "")
    expect(text.strip() == "of_the_training" and not list((slurm.folder / "disk").glob("data-*")), text)


def scaling(slurm, scripts, mnist):
    """One rank first: the others' speed-up is against it."""
    job = slurm.submit("--array=1,2%1", "--ntasks-per-node=2", "--cpus-per-task=1", scripts / "scaling.sh", *mnist, "--record", "times.csv")
    text = ended(slurm, job, slurm.folder / f"scaling-{job}.log")
    expect("2 ranks (MpiComm)" in text and len(re.findall(r"^speed-up [\d.]+, efficiency [\d.]+$", text, re.M)) == 2, text)


def requeue(slurm, scripts, training):
    """The signal stops the training, the next start goes on from there; one that is done is not started again, and where it is, ends well."""
    size = ["--ntasks-per-node=2", "--cpus-per-task=1"]
    job = slurm.submit(*size, scripts / "requeue.sh", *training, "--epochs", "1000000")
    log = slurm.folder / f"training-{job}.log"

    def text():
        return log.read_text(encoding="utf-8") if log.exists() else ""

    for start in (1, 2):
        slurm.wait_for(lambda: text().count("from step") == start - 1 and "epoch" in text().rpartition("from step")[2], 20,
                       f"start {start} that trains")
        slurm.run("scancel", "--signal=USR1", "--batch", job)
        slurm.wait_for(lambda: slurm.job(job)[0]["Restarts"] == str(start), 20, f"job {job} in the queue again: {text()}")
    slurm.run("scancel", job)
    first, second = [(int(a), int(b)) for a, b in re.findall(r"^2 ranks, from step (\d+) to (\d+)$", text(), re.M)]
    expect(0 == first[0] < first[1] == second[0] < second[1], text())
    job = slurm.submit(*size, scripts / "requeue.sh", *training, "--epochs", "1")
    log = slurm.folder / f"training-{job}.log"
    expect("from step 0 to 40" in ended(slurm, job, log) and slurm.job(job)[0]["Restarts"] == "0", text())
    slurm.run("scontrol", "requeue", job)                      # as where the signal came in the last step
    slurm.wait_for(lambda: "from step 40 to 40" in text() and slurm.job(job)[0]["JobState"] == "COMPLETED", 20,
                   f"job {job} that had nothing left to do: {text()}")


def whole_cores(slurm, scripts):
    """Where a core has two hardware threads, ranks that ask for four CPUs in all get four cores, since their mpirun binds to as many."""
    for script in ("one_node", "several_nodes", "requeue"):
        job = slurm.submit("--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=2", scripts / f"{script}.sh", "true")
        slurm.wait_for(lambda: "CPU_IDs=" in slurm.run("scontrol", "-d", "show", "job", job), 20, f"start of job {job}")
        slurm.run("scancel", job)
        got = re.search(r"CPU_IDs=(\S+)", slurm.run("scontrol", "-d", "show", "job", job))[1]
        expect(got == "0-7", f"{script}.sh: hardware threads {got}, which are not four cores")


def gpus(slurm, scripts, _):
    """That Slurm understands it: the nodes have no GPU, so it is refused for that and nothing else."""
    text = slurm.run("sbatch", scripts / "gpus.sh", "./my_training", check=False)
    expect("gres" in text.lower() and text.count("\n") <= 2, text)


def main():
    if lacking := missing():
        print(f"slurm: skipped: {', '.join(lacking)} is not installed (apt install slurmctld slurmd slurm-client)")
        return 77
    if len(os.sched_getaffinity(0)) < 2:
        print("slurm: skipped: two ranks with cores of their own need two cores")
        return 77
    repository, mnist, *training = sys.argv[1:]
    scripts = pathlib.Path(repository).resolve() / "examples/slurm"
    mnist = [mnist, "--samples", "600"]
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"slurm: not done within {DEADLINE} s"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("slurm: ended by SIGTERM"))
    signal.alarm(DEADLINE)
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl_tcp_if_include="lo",
                       OMPI_MCA_oob_tcp_if_include="lo", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    with tempfile.TemporaryDirectory(prefix="slurm") as folder:
        try:
            with Cluster(folder, environment, max(2, os.cpu_count())) as slurm:
                for script, programs in ((gpus, None), (one_node, training), (scaling, mnist), (requeue, training), (several_nodes, training)):
                    began = time.monotonic()
                    script(slurm, scripts, programs)
                    print(f"{script.__name__}: {time.monotonic() - began:.1f} s", flush=True)
            (pathlib.Path(folder) / "threads").mkdir()
            with Cluster(pathlib.Path(folder) / "threads", environment, 8, threads=2) as slurm:
                whole_cores(slurm, scripts)
        except SlurmError as e:
            print(f"slurm: {e}")
            return 1
    print("slurm: every script ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
