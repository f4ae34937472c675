#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's Adam(fused=True) over the parameters of a network, as they are (--lists) or as one flat tensor (--flat), whichever
is faster. "run N": N steps, answers seconds of wall and processor time. "check K": the largest difference from our parameters
after K steps, over their largest."""
import argparse
import os
import sys
import time

import torch

import network

parser = argparse.ArgumentParser()
parser.add_argument("--folder", required=True)
parser.add_argument("--network", required=True)
parser.add_argument("--lists", action="store_true")
parser.add_argument("--flat", action="store_true")
o = parser.parse_args()
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def split(values, shapes):
    """One tensor a parameter; our order of values, which an element-by-element update does not mind."""
    if o.flat:
        return [values.clone()]
    parts, at = [], 0
    for shape in shapes:
        parts.append(values[at:at + shape.numel()].reshape(shape).clone())
        at += shape.numel()
    return parts


class Adam:
    def __init__(self):
        self.shapes = [p.shape for p in network.build(o.network, False)[0].parameters()]
        self.reset()

    def reset(self):
        weights, gradients = (split(network.read(os.path.join(o.folder, name), "float32"), self.shapes)
                              for name in ("weights", "gradients"))
        self.parameters = [torch.nn.Parameter(w) for w in weights]
        for p, g in zip(self.parameters, gradients):
            p.grad = g
        self.optimizer = torch.optim.Adam(self.parameters, lr=1e-3, fused=True)

    def run(self, n):
        self.optimizer.param_groups[0]["lr"] = 1e-7
        self.optimizer.step()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(n):
            self.optimizer.step()
        return time.perf_counter() - wall, time.process_time() - cpu

    def check(self, k):
        self.reset()
        for _ in range(k):
            self.optimizer.step()
        expected = network.read(os.path.join(o.folder, "expected"), "float32")
        ours = torch.cat([p.detach().flatten() for p in self.parameters])
        return [((ours - expected).abs().max() / expected.abs().max()).item()]


adam = Adam()
print("ready", flush=True)
for line in sys.stdin:
    what, *values = line.split()
    print(*(repr(v) for v in (adam.run if what == "run" else adam.check)(int(values[0]))), flush=True)
