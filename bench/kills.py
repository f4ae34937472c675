#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is left of a real MPI job of 2 to 4 ranks when one of them is killed (SIGKILL) at a random instant: at its start, in a step, in a
commit, while it starts again? The job (examples/elastic/train.cpp) is started again until it ends; its weights must have the bits of a job that
was not killed, and nothing may be left of it: names in /dev/shm, temporary files, processes. How long from a start to the first new step?
Controls: without commits the training begins anew; without the sweep at the next start names are left in /dev/shm. 100 jobs and 1,000 kills of
pairs in shared memory; --quick: 10 and 100. Needs Open MPI and libgloo-dev."""
import contextlib
import itertools
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import report  # noqa: E402

MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]
FLAGS = (["--epochs", "4", "--every", "4", "--pause", "3"], ["--epochs", "4", "--every", "1"])   # the second is mostly in commits


def build(folder, compiler):
    """The two programs."""
    compiling, linking = report.library(mpi=True)
    programs = []
    for source in ("examples/elastic/train.cpp", "bench/support/killed_in_memory.cpp"):
        programs.append(os.path.join(folder, pathlib.Path(source).stem))
        subprocess.run(["ccache"] * bool(shutil.which("ccache")) + [compiler, "-std=c++20", "-O2", "-march=native", "-c", *compiling,
                       str(report.ROOT / source), "-o", programs[-1] + ".o"], check=True)
        subprocess.run([compiler, programs[-1] + ".o", "-o", programs[-1], *linking, "-lgloo"], check=True)
    return programs


class Job:
    """mpirun of the program in a folder, in a session of its own."""

    def __init__(self, program, ranks, folder, flags):
        self.ranks, self.folder, self.lines, self.first, self.first_at, self.in_commit = ranks, folder, [], None, None, False
        self.failed = False     # it ended with an error before it was killed, or not at all
        self.began = time.monotonic()
        environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": str(folder / "tmp"),
                                    "SKEIN_THREADS": "1"}
        (folder / "tmp").mkdir(exist_ok=True)
        self.process = subprocess.Popen([*MPIRUN, "-n", str(ranks), program, *flags], cwd=folder, env=environment, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            if found := re.match(r"first step: (\d+)", line):
                self.first, self.first_at = int(found[1]), time.monotonic() - self.began
            self.lines.append(line)

    def pids(self):
        with contextlib.suppress(OSError):
            own = self.process.pid
            return [int(p) for p in pathlib.Path(f"/proc/{own}/task/{own}/children").read_text().split()]
        return []

    def kill_one(self, at, choice):
        """Kills a rank so many seconds after the start, or once all are there. False where the job has ended before."""
        killed = False
        while self.process.poll() is None:
            pids = self.pids()
            if time.monotonic() >= self.began + at and len(pids) >= self.ranks:
                with contextlib.suppress(OSError):
                    os.kill(pids[choice % self.ranks], signal.SIGKILL)
                    killed = True
                    self.in_commit = any(name.endswith(".partial") for name in os.listdir(self.folder / "run"))
                break
            time.sleep(0.001)
        status = self.end()
        self.failed = self.failed or (status != 0 and not killed)
        return killed and status != 0

    def end(self):
        """Its status. One that does not end is ended, and has failed."""
        try:
            status = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.failed = True
            for pid in self.pids():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            os.killpg(self.process.pid, signal.SIGKILL)
            status = self.process.wait()
        self.reader.join()
        return status

    def weights(self):
        found = re.findall(r"steps, weights ([0-9a-f]{16})", "".join(self.lines))
        return found[0] if len(found) == 1 else None


def names_of_the_dead():
    """Names of skein in /dev/shm whose process has ended."""
    found = [re.match(r"skein-[0-9a-f]+-(\d+)-", name) for name in os.listdir("/dev/shm")]
    return [m.string for m in found if m and not os.path.exists(f"/proc/{m[1]}")]


def processes(program):
    found = 0
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            found += os.readlink(entry / "exe") == program
    return found


def trials(program, count, root):
    """Of `count` jobs: those with other bits, names, files and processes left, seconds of recovery, how kills fell, and the control's."""
    seen = {"kills": 0, "wrong": 0, "failed": 0, "left": 0, "seconds": [], "in_start": 0, "in_commit": 0, "went_on": 0, "anew": 0, "controls": 0}
    untouched, spans = {}, {}                                    # by ranks, and by kind of flags: when steps begin, and when all ends
    for ranks, kind in itertools.product((2, 3, 4), (0, 1)):
        folder = pathlib.Path(tempfile.mkdtemp(dir=root))
        job = Job(program, ranks, folder, FLAGS[kind])
        if job.end() != 0 or job.weights() is None or job.weights() != untouched.setdefault(ranks, job.weights()):
            raise SystemExit("kills: the job that nobody kills fails\n" + "".join(job.lines))
        spans[ranks, kind] = (0.5 * job.first_at, time.monotonic() - job.began)
        shutil.rmtree(folder)
    done = 0
    while done < count:
        at = random.Random(1000 + done)
        ranks, kind, folder = at.randint(2, 4), done % 2, pathlib.Path(tempfile.mkdtemp(dir=root))
        control = done % 10 == 8                                # the same without commits
        flags = FLAGS[kind] + (["--folder", ""] if control else [])
        first = Job(program, ranks, folder, flags)
        jobs = [first]
        hit = first.kill_one(at.uniform(*spans[ranks, kind]), at.randrange(4))
        while not hit and not first.failed:                      # it had ended: once more, earlier
            shutil.rmtree(folder / "run", ignore_errors=True)
            first = Job(program, ranks, folder, flags)
            jobs.append(first)
            hit = first.kill_one(at.uniform(0.0, 0.7) * spans[ranks, kind][1], at.randrange(4))
        seen["kills"] += hit
        commits = [p.name for p in folder.glob("run/step_*")]
        seen["in_commit"] += first.in_commit
        whole = any(not name.endswith(".partial") for name in commits)
        if at.random() < 0.4:                                    # and again while it starts
            second = Job(program, ranks, folder, flags)
            jobs.append(second)
            if second.kill_one(at.uniform(0.0, 0.6), at.randrange(4)):
                seen["kills"] += 1
                seen["in_start"] += second.first is None
        last = Job(program, ranks, folder, flags)
        status = last.end()
        for job in [*jobs, last]:
            if job.failed:
                print(f"  job {done} of {ranks} ranks fails by itself, or does not end\n" + "".join(job.lines[-12:]), flush=True)
            seen["failed"] += job.failed
        right = status == 0 and last.weights() == untouched[ranks]
        if control:
            seen["controls"] += 1
            seen["anew"] += last.first == 1
        else:
            ended = whole and last.first is None and right       # all had been trained when it was killed
            right = right and (ended or not whole or last.first > 1)
            seen["went_on"] += last.first is not None and last.first > 1
        if not right:
            print(f"  job {done} of {ranks} ranks: status {status}, first step {last.first}, weights {last.weights()}, not {untouched[ranks]}\n"
                  + "".join(last.lines[-12:]), flush=True)
        seen["wrong"] += not right
        if last.first_at is not None:
            seen["seconds"].append(last.first_at)
        left = names_of_the_dead() + [p for p in os.listdir(folder / "tmp")] + [str(p) for p in folder.glob("run/*.partial")]
        if left or processes(program):
            print(f"  job {done}: left {left}, {processes(program)} processes", flush=True)
        seen["left"] += len(left) + processes(program)
        shutil.rmtree(folder)
        done += 1
    return seen


def main():
    options = report.arguments(__doc__).parse_args()
    out = report.Report("kills", options)
    if not (shutil.which("mpirun") and os.path.exists("/usr/include/gloo/config.h")):
        print("kills: it needs Open MPI and gloo: apt install openmpi-bin libopenmpi-dev libgloo-dev")
        return 0
    jobs, pairs = (10, 100) if options.quick else (100, 1000)
    with tempfile.TemporaryDirectory(prefix="skein-kills-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as root:
        train, in_memory = build(root, options.compiler)
        seen = trials(train, jobs, root)
        good = out.add(f"jobs of MPI with a killed rank that end with other bits, of {jobs}", seen["wrong"], "jobs", must=0,
                       note=f"{seen['kills']} kills, {seen['in_commit']} in a commit, {seen['in_start']} before the first step of a restart; "
                            f"{seen['went_on']} jobs went on from a commit")
        good &= out.add("starts of them that fail by themselves, or do not end within 120 s", seen["failed"], "starts", must=0)
        good &= out.add("control: jobs without commits that begin anew", seen["anew"], "jobs", at_least=seen["controls"],
                        note=f"of {seen['controls']}")
        good &= out.add("names in /dev/shm, temporary files and processes left by them", seen["left"], "left", must=0)
        good &= out.add("seconds from the start of mpirun to the first new step, median", statistics.median(seen["seconds"]), "s", must=5,
                        note=f"most {max(seen['seconds']):.2f} s")
        def killed(what, kills):
            said = subprocess.run([in_memory, what, str(kills), "1"], stdout=subprocess.PIPE, text=True, check=True).stdout
            return map(int, said.split())

        kills, names, _, _, wrong = killed("communicators", pairs)
        good &= out.add(f"names in /dev/shm after each of {kills} kills of processes in shared memory", names, "names", must=0)
        kills, names, with_names, at_end, failed = killed("names", pairs)
        good &= out.add(f"where its files have names, after {kills} kills and one start", at_end, "names", must=0)
        good &= out.add("processes of these that fail by themselves", wrong + failed, "processes", must=0)
        good &= out.add("control: pairs whose kill leaves a name until the next start sweeps it", with_names, "pairs", at_least=1,
                        note=f"{names} names of {kills // 2} pairs")
    out.finish()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
