#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's PageRank with a dense matrix (scaled once), with a CSR matrix of ones, or with a CSR matrix scaled once. "run N": N iterations,
answers seconds of wall and processor time. "check K": the largest difference of its ranks after K iterations from ours, both of length
one, over the largest."""
import argparse
import os
import warnings

import torch

import network
import timing

parser = argparse.ArgumentParser()
parser.add_argument("--folder", required=True)
parser.add_argument("--nodes", type=int, required=True)
kinds = parser.add_mutually_exclusive_group(required=True)
for kind in ("dense", "csr-int32", "csr-int64", "csr-scaled"):
    kinds.add_argument("--" + kind, action="store_const", dest="kind", const=kind)
o = parser.parse_args()
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
torch.set_grad_enabled(False)
warnings.filterwarnings("ignore")

D, n = 0.85, o.nodes
offsets, indices = (network.read(os.path.join(o.folder, name), "int32") for name in ("offsets", "indices"))
share = network.read(os.path.join(o.folder, "share"), "float32")
kept = torch.int64 if o.kind == "csr-int64" else torch.int32
scaled = o.kind in ("dense", "csr-scaled")
values = share[indices.to(torch.int64)] if scaled else torch.ones(indices.numel())
matrix = torch.sparse_csr_tensor(offsets.to(kept), indices.to(kept), values, size=(n, n))
if o.kind == "dense":
    matrix = matrix.to_dense()


def iterate(x, k):
    if scaled:
        for _ in range(k):
            x = (matrix @ x).mul_(D).add_((1 - D) / n)
    else:
        for _ in range(k):
            x = (matrix @ (x * share)).mul_(D).add_((1 - D) / n)
    return x


uniform = torch.full((n,), 1 / n)
state = iterate(uniform, 2)


def run(k):
    global state
    state = iterate(state, 1)

    def go_on():
        global state
        state = iterate(state, k)

    return timing.timed(go_on)


def check(k):
    theirs, ours = iterate(uniform, k), network.read(os.path.join(o.folder, "ranks"), "float32")
    theirs, ours = (v.to(torch.float64) / v.to(torch.float64).norm() for v in (theirs, ours))
    return [((theirs - ours).abs().max() / theirs.max()).item()]


timing.serve(run, check)
