#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's relu(u * v + w): as it is written (--plain), with addcmul and into memory that is there (--in-place), or through
torch.compile (--compile). "run N": answers seconds of wall and processor time. "check": the largest difference from ours."""
import argparse
import os

import torch

import network
import timing

parser = argparse.ArgumentParser()
parser.add_argument("--folder", required=True)
for name in ("plain", "in-place", "compile"):
    parser.add_argument("--" + name, action="store_true")
o = parser.parse_args()
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
torch.set_grad_enabled(False)

u, v, w, expected = (network.read(os.path.join(o.folder, name), "float32") for name in ("u", "v", "w", "expected"))
result = torch.empty_like(u)


def plain():
    return torch.relu(u * v + w)


def in_place():
    torch.addcmul(w, u, v, out=result)
    return result.relu_()


function = in_place if o.in_place else torch.compile(lambda a, b, c: torch.relu(a * b + c)) if o.compile else plain
call = (lambda: function(u, v, w)) if o.compile else function

call()
timing.serve(lambda n: timing.repeated(call, n), lambda: [(call() - expected).abs().max().item()])
