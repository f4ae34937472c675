#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's product of a sparse CSR matrix (float values) with a vector. "run N": answers seconds of wall and processor time. "check":
the largest difference from ours, over the largest value."""
import argparse
import os
import warnings

import torch

import network
import timing

parser = argparse.ArgumentParser()
parser.add_argument("--folder", required=True)
parser.add_argument("--rows", type=int, required=True)
parser.add_argument("--int32", action="store_true")
o = parser.parse_args()
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
torch.set_grad_enabled(False)
warnings.filterwarnings("ignore")

offsets, indices = (network.read(os.path.join(o.folder, name), "int32") for name in ("offsets", "indices"))
x, expected = (network.read(os.path.join(o.folder, name), "float32") for name in ("x", "expected"))
if not o.int32:
    offsets, indices = offsets.to(torch.int64), indices.to(torch.int64)
matrix = torch.sparse_csr_tensor(offsets, indices, torch.ones(indices.numel()), size=(o.rows, x.numel()))


def call():
    return matrix @ x


call()
timing.serve(lambda n: timing.repeated(call, n), lambda: [((call() - expected).abs().max() / expected.abs().max()).item()])
