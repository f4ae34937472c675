#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of examples/elastic with the launchers themselves. A rank is killed (SIGKILL) after the first commit; the job goes on, and ends
with the bits of one that was not killed, where as many ranks went on. Of torchrun one of two machines leaves too: the one that is left goes on
alone. Slurm puts back no job of which a rank ends with an error. Skipped, with a sentence, where a launcher is not installed.

Arguments: the repository, the program examples/elastic/train, and mpirun, torchrun or slurm."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

REPOSITORY, TRAIN, LAUNCHER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
SCRIPTS = REPOSITORY / "examples/elastic"
DEADLINE = 80                                                  # seconds: then everything ends, with a failure
PAUSED = ["--pause", "15", "--every", "5"]                     # 100 steps: a second and a half, in which a kill hits
WORDS = re.compile(r"^(\d+) ranks of (\w+), (\d+) steps, weights ([0-9a-f]{16})$", re.M)
sys.path.insert(0, str(REPOSITORY / "tests/slurm"))
started = []


class Failed(RuntimeError):
    """What did not come out as it should."""


def free_port():
    """Of two free ones the first: torchrun's rendezvous has one, the ranks the next."""
    while True:
        with socket.socket() as first, socket.socket() as second, contextlib.suppress(OSError, OverflowError):
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            second.bind(("127.0.0.1", port + 1))
            return port


def start(command, folder, **environment):
    log = open(folder / f"log{len(started)}", "w+", encoding="utf-8")
    inherited = {n: v for n, v in os.environ.items() if not n.startswith(("SLURM", "OMPI_COMM", "PMIX", "TORCHELASTIC"))}
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                               env=inherited | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                                "OMPI_MCA_rmaps_base_oversubscribe": "1"} | environment)
    process.log = pathlib.Path(log.name)
    started.append(process)
    return process


def ended(process, status=0):
    code = process.wait(DEADLINE)
    text = process.log.read_text(encoding="utf-8", errors="replace")
    if code != status:
        raise Failed(f"{' '.join(map(str, process.args))} ended with {code}, not {status}\n{text[-4000:]}")
    return text


def last_words(text, restarts=0):
    """Ranks, communicator, steps and weights of the training that has ended, which went on from a commit so many times."""
    if (went_on := sum(int(step) > 1 for step in re.findall(r"^first step: (\d+)$", text, re.M))) != restarts:
        raise Failed(f"it went on from a commit {went_on} times, not {restarts}\n{text[-4000:]}")
    found = WORDS.findall(text)
    if len(found) != 1:
        raise Failed(f"{len(found)} trainings have ended\n{text[-4000:]}")
    return found[0]


folders = set()


def ranks():
    """The ranks, by their program and folder, of all that this has started."""
    pids = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.readlink(entry / "exe") == str(TRAIN) and os.readlink(entry / "cwd") in folders:
                pids.append(int(entry.name))
    return sorted(pids)


def below(pid, root):
    while pid > 1:
        if pid == root:
            return True
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def wait_for(condition, what, seconds=40):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise Failed(f"no {what} within {seconds} s\n" + "\n".join(p.log.read_text(errors="replace")[-1500:] for p in started))
        time.sleep(0.02)
    return found


def commits(folder):
    return [p.name for p in (folder / "run").glob("step_*") if p.suffix != ".partial"]


def kill_one(folder):
    wait_for(lambda: commits(folder), "commit")
    os.kill(wait_for(lambda: len(found := ranks()) >= 2 and found, "ranks that train")[-1], signal.SIGKILL)


def new_folder(root, name):
    folder = pathlib.Path(root) / name
    folder.mkdir()
    folders.add(str(folder))
    return folder


def with_mpirun(root):
    untouched = last_words(ended(start([SCRIPTS / "mpirun.sh", "-n", "2", TRAIN], new_folder(root, "untouched"))))
    folder = new_folder(root, "killed")
    job = start([SCRIPTS / "mpirun.sh", "-n", "2", TRAIN, *PAUSED], folder)
    kill_one(folder)
    text = ended(job)
    if last_words(text, 1) != untouched or text.count("it is started again") != 1:
        raise Failed(f"{untouched} without a kill\n{text}")
    began = time.monotonic()
    text = ended(start([SCRIPTS / "mpirun.sh", "-n", "2", TRAIN, "--epoch", "3"], new_folder(root, "wrong")), 2)
    if "started again" in text:
        raise Failed(f"a wrong flag is tried again\n{text}")
    for name, commit, starts in (("hopeless", "true", 2), ("once", "mkdir -p run/step_1", 3)):   # the first start of the second commits
        text = ended(start([SCRIPTS / "mpirun.sh", "-n", "2", "bash", "-c", commit + "; kill -9 $$"], new_folder(root, name), MAX_RESTARTS="1"),
                     137)
        if text.count("it is started again") != starts - 1 or "2 starts without a new commit in run: given up" not in text:
            raise Failed(f"{name}: not started {starts} times\n{text}")
    took = time.monotonic() - began
    folder = new_folder(root, "ended")
    job = start([SCRIPTS / "mpirun.sh", "-n", "2", TRAIN, *PAUSED, "--epochs", "1000"], folder)
    wait_for(lambda: commits(folder), "commit")
    job.terminate()                                              # the script alone
    if "it is started again" in (text := ended(job, 143)) or ranks():
        raise Failed(f"SIGTERM does not end it, but {ranks()} are there\n{text}")
    return f"{untouched}; the errors took {took:.1f} s"


def with_torchrun(root):
    python = pathlib.Path(os.environ.get("SKEIN_PEER_PYTHON") or REPOSITORY / "build/peer-venv/bin/python")
    if not (python.parent / "torchrun").exists():
        print("elastic: skipped: torchrun is not there (scripts/bench --peer makes an environment that has it, or set SKEIN_PEER_PYTHON)")
        sys.exit(77)

    def agent(folder, port, *flags, **environment):
        return start([SCRIPTS / "torchrun.sh", TRAIN, *flags], folder, PATH=f"{python.parent}:{os.environ['PATH']}",
                     ENDPOINT=f"localhost:{port}", JOB=folder.name, GLOO_SOCKET_IFNAME="lo",
                     **({"NODES": "1", "RANKS": "2", "RDZV_CONF": "last_call_timeout=1"} | environment))

    untouched = last_words(ended(agent(new_folder(root, "untouched"), free_port())))
    folder = new_folder(root, "killed")
    job = agent(folder, free_port(), *PAUSED)
    kill_one(folder)
    if (last := last_words(ended(job), 1)) != untouched:
        raise Failed(f"{last}, and {untouched} without a kill")
    # Two machines of a rank each, of which one leaves with its rank: the other goes on alone.
    folder, port = new_folder(root, "left"), free_port()
    two = {"NODES": "1:2", "RANKS": "1", "RDZV_CONF": "last_call_timeout=3,keep_alive_interval=1,keep_alive_max_attempt=2"}
    stays = agent(folder, port, *PAUSED, "--epochs", "8", **two)
    time_out = time.monotonic() + 20
    while time.monotonic() < time_out:                           # the store is the first one's
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 0.2):
            break
        time.sleep(0.05)
    leaves = agent(folder, port, *PAUSED, "--epochs", "8", **two)
    wait_for(lambda: commits(folder) and len(ranks()) == 2, "two ranks with a commit")
    os.killpg(leaves.pid, signal.SIGKILL)
    for pid in ranks():
        with contextlib.suppress(OSError):
            if not below(pid, stays.pid):
                os.kill(pid, signal.SIGKILL)
    last = last_words(ended(stays), 1)
    if last[:3] != ("1", "GlooComm", "200"):
        raise Failed(f"one rank of two was to go on: {last}")
    return f"{untouched}, then {last}"


def with_slurm(root):
    from cluster import Cluster, missing
    if lacking := missing():
        print(f"elastic: skipped: {', '.join(lacking)} is not installed (apt install slurmctld slurmd slurm-client)")
        sys.exit(77)
    if len(os.sched_getaffinity(0)) < 2:
        print("elastic: skipped: two ranks of a core each need two cores")
        sys.exit(77)
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), GLOO_SOCKET_IFNAME="lo")
    home = new_folder(root, "slurm")
    with Cluster(home, environment, max(2, os.cpu_count())) as slurm:
        size = ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1"]

        def submit(name, *flags, before=()):
            folder = new_folder(root, name)
            job = slurm.run("sbatch", "--parsable", f"--chdir={folder}", *size, SCRIPTS / "slurm.sh", *before, TRAIN, *flags).strip()
            return folder, job, folder / f"training-{job}.log"

        def result(job, log, restarts=0):
            jobs = slurm.wait_for_end(job, 60)
            text = log.read_text(encoding="utf-8") if log.exists() else "(no output)"
            if any(j["JobState"] != "COMPLETED" for j in jobs):
                raise Failed(f"job {job}: {jobs[0]['JobState']}\n{text}")
            return last_words(text, restarts), jobs[0]["Restarts"]

        _, job, log = submit("untouched")
        untouched, _ = result(job, log)
        folder, job, log = submit("killed", *PAUSED)
        kill_one(folder)
        slurm.wait_for(lambda: slurm.job(job)[0]["Restarts"] == "1", 20, f"job {job} in the queue again")
        wait_for(lambda: log.read_text(encoding="utf-8").count("first step: ") == 2, "step of the next start")   # it takes signals then
        slurm.run("scancel", "--signal=USR1", job)
        after, restarts = result(job, log, 2)
        if after != untouched or restarts != "2":
            raise Failed(f"{after} after {restarts} restarts, and {untouched} without a kill")
        slurm.environment |= {"MAX_RESTARTS": "1", "SKEIN_DEADLINE": "2"}
        _, job, log = submit("wrong", before=("bash", "-c", '[ "$SLURM_PROCID" = 0 ] || exit 1; exec "$0" "$@"'))
        state = slurm.wait_for_end(job, 40)[0]
        if (state["JobState"], state["ExitCode"], state["Restarts"]) != ("FAILED", "1:0", "0"):
            raise Failed(f"of a rank that exits 1: {state['JobState']}, {state['ExitCode']}, {state['Restarts']} restarts\n{log.read_text()}")
    return f"{untouched}, after a kill and a signal"


def main():
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"elastic: not done within {DEADLINE} s"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("elastic: ended by SIGTERM"))
    signal.alarm(DEADLINE)
    with tempfile.TemporaryDirectory(prefix="elastic") as root:
        try:
            print(f"{LAUNCHER}: {({'mpirun': with_mpirun, 'torchrun': with_torchrun, 'slurm': with_slurm})[LAUNCHER](root)}")
        except RuntimeError as e:
            print(f"elastic: {LAUNCHER}: {e}")
            return 1
        finally:
            for process in started:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
            for pid in ranks():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
