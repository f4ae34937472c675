#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kfac-pytorch's side of bench kfac: ResNet-20 from our weights, preconditioned SGD. Requests as those of training.py, but "run N" is N
cycles of 10 steps, the interval of the inverses."""
import argparse
import os
import sys
import time

import torch
from torch import nn

import network
import training

try:
    from kfac.preconditioner import KFACPreconditioner
except ImportError as missing:
    sys.exit(f"{missing}: pip install --no-deps git+https://github.com/gpauloski/kfac-pytorch")

CYCLE = 10


class Shortcut(nn.Module):
    """Every second pixel, zeros around the channels (option A of He et al.)."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.width // 4, self.width // 4))


class Block(nn.Module):
    def __init__(self, channels, width, step):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, width, 3, step, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width))
        self.shortcut = Shortcut(width) if step > 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class Pool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    for channels, width in (16, 16), (16, 32), (32, 64):
        layers += [Block(channels if i == 0 else width, width, 2 if i == 0 and channels < width else 1) for i in range(3)]
    return nn.Sequential(*layers, Pool(), nn.Linear(64, 10))


def load(model, path):
    """In the order of the layers; convolutions (height, width, in, out), linear weights (in, out)."""
    values, at = network.read(path, "float32"), 0
    with torch.no_grad():
        for layer in model.modules():
            for parameter in layer.parameters(recurse=False):
                taken = values[at:at + parameter.numel()]
                at += parameter.numel()
                if parameter.dim() == 4:
                    out, each, height, width = parameter.shape
                    taken = taken.reshape(height, width, each, out).permute(3, 2, 0, 1)
                elif parameter.dim() == 2:
                    taken = taken.reshape(parameter.shape[1], parameter.shape[0]).T
                parameter.copy_(taken)
            if isinstance(layer, nn.BatchNorm2d):
                layer.reset_running_stats()
    assert at == len(values), "the file holds more parameters than the network has"


class Preconditioned(training.Training):
    def __init__(self, o):
        x = network.read(os.path.join(o.folder, "x"), "float32").reshape(o.batch, 32, 32, 3)
        x = network.laid_out(x.permute(0, 3, 1, 2), o.channels_last)
        y = network.read(os.path.join(o.folder, "labels"), "int32").long()
        model = resnet20()
        super().__init__(o, (model.to(memory_format=torch.channels_last) if o.channels_last else model, (32, 32, 3), True),
                         (x, y, nn.functional.cross_entropy))

    def reset(self):
        load(self.model, os.path.join(self.o.folder, "weights"))
        for module in self.model.modules():  # hooks of the preconditioner before
            module._forward_pre_hooks.clear()
            module._backward_hooks.clear()
        self.run_model = self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.o.lr, momentum=self.o.momentum, fused=True)
        self.preconditioner = KFACPreconditioner(
            self.model, factor_update_steps=self.o.factor_every, inv_update_steps=CYCLE, damping=0.003, factor_decay=0.95,
            kl_clip=0.001, lr=self.o.lr, compute_method="inverse")

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.run_model(x), y)
        loss.backward()
        self.preconditioner.step()
        self.optimizer.step()
        return loss

    def run(self, n):
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-3 * self.o.lr
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(n * CYCLE):
            self.step(self.x, self.y)
        return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, kind in ("folder", str), ("network", str), ("batch", int), ("lr", float), ("momentum", float), ("factor-every", int):
        parser.add_argument("--" + name, type=kind, required=True)
    for name in "channels-last", "compile":
        parser.add_argument("--" + name, action="store_true")
    torch.set_flush_denormal(True)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(1)
    training.serve(Preconditioned(parser.parse_args()))
