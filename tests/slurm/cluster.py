# SPDX-License-Identifier: Apache-2.0
"""A Slurm of two pretended nodes on this machine, for as long as a test lasts: slurmctld, and a slurmd a node, in a temporary folder, as the
user who runs the test, root or not. No systemd, no cgroups, no munge. Whatever it started is gone when the context ends, in any way."""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

TOOLS = ("slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "sinfo")
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"                 # where daemons are, for users too
CONFIGURATION = """
ClusterName=skein
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=1,sched_min_interval=0
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
KillWait=2
ReturnToService=2
NodeName=DEFAULT CPUs={cpus} ThreadsPerCore={threads} CoresPerSocket={cores} State=UNKNOWN
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]}
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
libc = ctypes.CDLL(None, use_errno=True)


class SlurmError(RuntimeError):
    """What Slurm did not do."""


def missing():
    """The tools that are not installed."""
    return [tool for tool in TOOLS if not shutil.which(tool, path=PATH)]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def descendants():
    """The processes that come from this one, by /proc."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, front = [], [os.getpid()]
    while front:
        front = [pid for pid, parent in parents.items() if parent in front]
        found += front
    return found


class Cluster:
    """with Cluster(folder, environment, cpus) as slurm: slurm.run("sbatch", ...). Of `cpus` hardware threads `threads` make a core."""

    def __init__(self, folder, environment, cpus, threads=1):
        self.folder, self.cpus, self.threads = pathlib.Path(folder), cpus, threads
        outer = {name: value for name, value in environment.items() if not name.startswith(("SLURM", "SBATCH"))}
        self.environment = dict(outer, PATH=PATH, SLURM_CONF=str(self.folder / "slurm.conf"))

    def __enter__(self):
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)          # a daemon's orphans become this process's children
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        user = subprocess.run(["id", "-un"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        for name in ("state", "n1", "n2"):
            (self.folder / name).mkdir()
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], ports=free_ports(3), user=user, folder=self.folder, cpus=self.cpus,
            threads=self.threads, cores=self.cpus // self.threads))
        version = tuple(int(n) for n in re.findall(r"\d+", self.run("slurmd", "-V"))[:2])
        (self.folder / "cgroup.conf").write_text(f"CgroupPlugin={'disabled' if version >= (23, 2) else 'cgroup/v1'}\n")
        self.daemon("slurmctld", "-D", "-i")
        for node in ("n1", "n2"):
            self.daemon("slurmd", "-D", "-N", node)
        self.wait_for(lambda: self.run("sinfo", "-h", "-o", "%D %t", check=False).split() == ["2", "idle"], 10, "nodes that are idle")

    def daemon(self, *command):
        log = open(self.folder / f"{'-'.join(command)}.log", "w", encoding="utf-8")
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self.environment, cwd=self.folder,
                         start_new_session=True, preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))

    def run(self, *command, check=True):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20,
                              env=self.environment, cwd=self.folder, check=False)
        if check and done.returncode != 0:
            raise SlurmError(f"{' '.join(command)}: {done.stdout.strip()}")
        return done.stdout

    def wait_for(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                logs = "\n".join(f"--- {p.name}\n{p.read_text(errors='replace')[-1500:]}" for p in sorted(self.folder.glob("*.log")))
                raise SlurmError(f"no {what} within {seconds} s\n{logs}")
            time.sleep(0.05)

    def submit(self, *arguments):
        """The number of a new job."""
        return self.run("sbatch", "--parsable", *arguments).strip()

    def job(self, number):
        """What Slurm knows of a job, {"JobState": "RUNNING", ...}; of an array one for each of its jobs, in the order of their numbers."""
        jobs = [dict(field.partition("=")[::2] for field in line.split() if "=" in field)
                for line in self.run("scontrol", "-o", "show", "job", number).splitlines() if line.startswith("JobId=")]
        return sorted(jobs, key=lambda job: job.get("ArrayTaskId", "").zfill(9))

    def wait_for_end(self, number, seconds=20):
        """The jobs of this number, once they have ended."""
        running = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
        self.wait_for(lambda: all(job["JobState"] not in running for job in self.job(number)), seconds, f"end of job {number}")
        return self.job(number)

    def stop(self):
        """Ends all processes that come from this one: what daemons leave behind are its children."""
        end = time.monotonic() + 5
        while (left := descendants()) and time.monotonic() < end:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.02)
