#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DistributedDataParallel over gloo: two processes, half of the samples each. Rank 0 reads requests as training.py does
and hands them to rank 1, which it has started. --bind gives each process a core of its own, --free leaves that to the system."""
import os
import subprocess
import sys
import time

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import network  # noqa: E402
import training  # noqa: E402

rank = int(os.environ.get("SKEIN_PEER_RANK", "0"))
bind = "--bind" in sys.argv
sys.argv = [a for a in sys.argv if a not in ("--bind", "--free")]
o = training.arguments()
torch.set_flush_denormal(True)                      # as our workers do; before there are threads, which inherit it
torch.set_num_threads(1)
cores = sorted(os.sched_getaffinity(0))
child = None
if rank == 0:
    more = ["--bind"] if bind else []
    child = subprocess.Popen([sys.executable, __file__, *sys.argv[1:], *more], env=dict(os.environ, SKEIN_PEER_RANK="1"),
                             stdin=subprocess.PIPE, text=True)
if bind and len(cores) > 1:
    os.sched_setaffinity(0, {cores[rank]})
meeting = f"file://{o.folder}/gloo.{os.getpid() if rank == 0 else os.getppid()}"
dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)


class Shared(training.Training):
    def __init__(self):
        self.plain, sample, images = network.build(o.network, o.channels_last)
        x, y, loss = network.samples(o.folder, o.batch, sample, images, o.channels_last)
        half = slice(rank * o.batch // 2, (rank + 1) * o.batch // 2)
        x = network.laid_out(x[half], o.channels_last) if images else x[half].clone()
        super().__init__(o, (self.plain, sample, images), (x, y[half].clone(), loss))

    def reset(self):
        super().reset()
        self.run_model = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)

    def run(self, n):
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-3 * o.lr
        self.step(self.x, self.y)
        dist.barrier()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(n):
            self.step(self.x, self.y)
        dist.barrier()
        return time.perf_counter() - wall, time.process_time() - cpu

    def losses(self, k):
        self.reset()
        values = []
        for _ in range(k):
            loss = self.step(self.x, self.y).detach()
            dist.all_reduce(loss)
            values.append(loss.item() / 2)
        return values


shared = Shared()
if rank == 0:
    print("ready", flush=True)
for line in sys.stdin:
    if child:
        child.stdin.write(line)
        child.stdin.flush()
    what, value = line.split()
    answer = (shared.run if what == "run" else shared.losses)(int(value))
    if rank == 0:
        print(*(repr(float(v)) for v in answer), flush=True)
