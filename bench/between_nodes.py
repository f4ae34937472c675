#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long does an all-reduce of floats take between machines? Nodes are network namespaces of this machine on one bridge, their links as
they are, and shaped to 1 Gbit/s and 100 Mbit/s; each runs a rank, or two. MpiComm in native order (with two ranks a node within nodes first,
and flat) and in the order of the ranks, and Hierarchical over two ranks a node, against MPI_Allreduce of Open MPI, in place or not,
whichever is faster. Needs root, ip, tc, unshare and Open MPI; says so and ends well where the machine does not allow it.
--real-time: ranks go before all else on the machine, for a figure on one that is not idle."""
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import report  # noqa: E402

BRIDGE, NODE = "skeinbridge", "skeinnode"
LINKS = {"unshaped": None, "1 Gbit/s": "1gbit", "100 Mbit/s": "100mbit"}


def run(*command, check=True):
    return subprocess.run(command, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Nodes:
    """`count` namespaces with an address each, on a bridge in a namespace of its own; all gone when it ends."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        try:
            run("ip", "netns", "add", BRIDGE)
            self.inside(BRIDGE, "ip", "link", "add", "br0", "type", "bridge")
            for device in ("br0", "lo"):
                self.inside(BRIDGE, "ip", "link", "set", device, "up")
            self.inside(BRIDGE, "ip", "addr", "add", "10.77.0.100/24", "dev", "br0")
            for i in range(1, self.count + 1):
                node = f"{NODE}{i}"
                run("ip", "netns", "add", node)
                run("ip", "link", "add", "v0", "netns", node, "type", "veth", "peer", "name", f"p{i}", "netns", BRIDGE)
                self.inside(BRIDGE, "ip", "link", "set", f"p{i}", "master", "br0", "up")
                self.inside(node, "ip", "addr", "add", f"10.77.0.{i}/24", "dev", "v0")
                for device in ("v0", "lo"):
                    self.inside(node, "ip", "link", "set", device, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in [BRIDGE] + [f"{NODE}{i}" for i in range(1, self.count + 1)]:
            run("ip", "netns", "del", name, check=False)

    @staticmethod
    def inside(namespace, *command, check=True):
        return run("ip", "netns", "exec", namespace, *command, check=check)

    def shape(self, rate):
        for i in range(1, self.count + 1):
            for namespace, device in ((f"{NODE}{i}", "v0"), (BRIDGE, f"p{i}")):
                self.inside(namespace, "tc", "qdisc", "del", "dev", device, "root", check=False)
                if rate:
                    self.inside(namespace, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "128kb", "latency",
                                "50ms")

    def job(self, folder, nodes, ranks, command, real_time):
        """The lines that `ranks` ranks on each of `nodes` nodes print."""
        agent = os.path.join(folder, "agent")
        with open(agent, "w") as out:
            out.write(f'#!/bin/sh\nnode={NODE}${{1##*.}}\nshift\n'
                      'exec ip netns exec "$node" unshare -u sh -c "hostname $node; $*"\n')
        os.chmod(agent, 0o755)
        hosts = ",".join(f"10.77.0.{i}:{ranks}" for i in range(1, nodes + 1))
        first = ["chrt", "-r", "1"] if real_time else []
        done = run("ip", "netns", "exec", BRIDGE, "unshare", "-u", "sh", "-c", f'hostname {BRIDGE}; exec "$@"', "sh", *first,
                   "env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "timeout", "150", "mpirun", "--host", hosts,
                   "-n", str(nodes * ranks), "--bind-to", "none", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent,
                   "--mca", "btl", "tcp,self,vader", "--mca", "btl_vader_single_copy_mechanism", "none", "--mca", "pml", "ob1",
                   "--mca", "oob_tcp_if_include", "10.77.0.0/24", "--mca", "btl_tcp_if_include", "10.77.0.0/24",
                   "--mca", "mpi_yield_when_idle", "1", *command, check=False)
        if done.returncode:
            raise RuntimeError("between_nodes: the job failed:\n" + done.stdout)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def why_not():
    """A sentence where this machine cannot run it; else nothing."""
    for program in ("ip", "tc", "unshare", "mpirun"):
        if not shutil.which(program):
            return f"between_nodes: skipped, since {program} is not installed"
    if "Open MPI" not in run("mpirun", "--version", check=False).stdout:
        return "between_nodes: skipped: its peer is Open MPI"
    if os.geteuid() != 0 or run("ip", "netns", "add", BRIDGE + "try", check=False).returncode:
        return "between_nodes: skipped, since this machine does not allow network namespaces (it wants root)"
    run("ip", "netns", "del", BRIDGE + "try", check=False)
    return None


def size_in_words(b):
    return f"{b >> 20} MiB" if b >> 20 else f"{b >> 10} KiB"


def interval(ratios):
    """Median, and the 95 % interval of it by bootstrap."""
    random.seed(1)
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(400))
    return statistics.median(ratios), medians[10], medians[389]


def add(result, title, lines):
    """One figure a size and candidate."""
    by_size = {}
    for line in lines:
        by_size.setdefault(line["bytes"], {})[line["what"]] = line["seconds"]
    for size, seconds in by_size.items():
        best = min(("MPI", "MPI in place"), key=lambda what: statistics.median(seconds[what]))
        for what in ("native", "flat", "ranks", "levels"):
            if what in seconds:
                ratio = interval([ours / peer for ours, peer in zip(seconds[what], seconds[best])])
                result.compare(f"{title}, {size_in_words(size)}, {what}", 1e6 * statistics.median(seconds[what]),
                               1e6 * statistics.median(seconds[best]), "us", ratio, peer_name="MPI_Allreduce",
                               must=1.05 if what == "native" and not title.endswith(", 2 nodes") else None,
                               note=f"{len(seconds[what])} rounds, {'in place' if best != 'MPI' else 'not in place'}")


def add_step(result, title, lines):
    """What a training step waits for its sums."""
    by_what = {line["what"]: line for line in lines}
    ratio = interval([ours / peer for ours, peer in zip(by_what["native"]["exposed"], by_what["ranks"]["exposed"])])
    whole = 1e3 * statistics.median(by_what["native"]["seconds"])
    result.compare(f"{title}, exposed of a step, native", 1e3 * statistics.median(by_what["native"]["exposed"]),
                   1e3 * statistics.median(by_what["ranks"]["exposed"]), "ms", ratio, peer_name="order of the ranks",
                   note=f"784-512-512-10, batch 64 a rank; the step takes {report.number(whole)} ms")


def main():
    parser = report.arguments(__doc__)
    parser.add_argument("--real-time", action="store_true")
    parser.add_argument("--nodes", default="2,4,8")
    options = parser.parse_args()
    if reason := why_not():
        print(reason)
        return
    result = report.Report("between_nodes", options)
    seconds = "0.4" if options.quick else "2"
    counts = [int(count) for count in options.nodes.split(",")]
    with tempfile.TemporaryDirectory() as folder, Nodes(max(counts)) as nodes:
        compiling, linking = report.library(mpi=True)
        program, step = (os.path.join(folder, name) for name in ("between_nodes", "between_nodes_step"))
        for path in (program, step):
            subprocess.run([options.compiler, "-std=c++20", "-O2", "-march=native", "-DNDEBUG", *compiling,
                            str(report.ROOT / "bench/support" / (os.path.basename(path) + ".cpp")), "-o", path, *linking], check=True)
        for link, rate in LINKS.items():
            nodes.shape(rate)
            for count in counts:
                for ranks in (1, 2) if count == 4 else (1,):
                    title = f"all_reduce, {link}, {count} nodes" + (" of 2 ranks" if ranks > 1 else "")
                    largest = str(1 << 20 if options.quick and link != "unshaped" else 1 << 24)  # seconds a call on slow links
                    add(result, title, nodes.job(folder, count, ranks, [program, seconds, largest], options.real_time))
                if link != "100 Mbit/s":
                    add_step(result, f"{link}, {count} nodes",
                             nodes.job(folder, count, 1, [step, "4" if options.quick else "12"], options.real_time))
    if options.real_time:
        result.note = "real-time priority on a machine that was not idle"
    result.finish()


if __name__ == "__main__":
    main()
