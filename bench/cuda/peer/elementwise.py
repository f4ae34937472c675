#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's relu(u * v + w) on a GPU, timed by events: as it is written (--plain) or through torch.compile (--compile-it). Answers
"ready", then to "run N" the seconds twice."""
import os
import pathlib
import sys

import torch

import events

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "peer"))
import network  # noqa: E402

folder = sys.argv[sys.argv.index("--folder") + 1]
torch.set_grad_enabled(False)
u, v, w, expected = (network.read(os.path.join(folder, name), "float32").cuda() for name in ("u", "v", "w", "expected"))


def plain(a, b, c):
    return torch.relu(a * b + c)


function = torch.compile(plain) if "--compile-it" in sys.argv else plain
assert (function(u, v, w) - expected).abs().max().item() < 1e-5

events.serve(lambda: function(u, v, w), 20)
