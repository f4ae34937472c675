#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's matrix products and convolutions on a GPU, timed by events: "gemm M N K" or "conv N H W C FILTERS KERNEL STRIDE PADDING
forward|backward", in --fp32, --tf32 or --bf16. Answers "ready", then to "run N" the seconds twice."""
import sys

import torch

import events

precision = next((a[2:] for a in sys.argv if a in ("--fp32", "--tf32", "--bf16")), "fp32")
words = [a for a in sys.argv[1:] if not a.startswith("--")]
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
torch.backends.cudnn.benchmark = True
torch.set_grad_enabled(False)
dtype = torch.bfloat16 if precision == "bf16" else torch.float32
what, *rest = words
n = [int(v) for v in rest if v.isdigit()]


def random(*shape):
    return (torch.rand(*shape, device="cuda") * 2 - 1).to(dtype)


if what == "gemm":
    a, b, c = random(n[0], n[2]), random(n[2], n[1]), random(n[0], n[1])

    def call():
        torch.mm(a, b, out=c)
else:
    batch, height, width, channels, filters, kernel, stride, padding = n
    x = random(batch, channels, height, width).to(memory_format=torch.channels_last)
    w = random(filters, channels, kernel, kernel).to(memory_format=torch.channels_last)
    y = torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)
    dy = torch.rand_like(y)

    def call():
        if rest[-1] == "forward":
            torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)
        else:
            torch.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, [True, True, False])


events.serve(call, 20)
