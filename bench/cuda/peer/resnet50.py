#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's ResNet-50 training step in bf16 (autocast), channels-last, on a GPU, timed by events: --eager, or --graphs (the step as one
CUDA graph). Answers "ready", then to "run N" the seconds twice."""
import sys

import torch
from torch import nn

import events

batch = int(sys.argv[sys.argv.index("--batch") + 1])
graphs = "--graphs" in sys.argv
torch.backends.cudnn.benchmark = True
torch.manual_seed(1)


def conv(channels, filters, kernel, stride=1):
    return nn.Conv2d(channels, filters, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = nn.Sequential(conv(channels, width, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                                  conv(width, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                                  conv(width, 4 * width, 1), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity()
        if channels != 4 * width:
            self.shortcut = nn.Sequential(conv(channels, 4 * width, 1, stride), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return torch.relu_(self.body(x) + self.shortcut(x))


layers, channels = [conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
    for i in range(count):
        layers.append(Block(channels, width, stride if i == 0 else 1))
        channels = 4 * width
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)).cuda()
assert sum(p.numel() for p in model.parameters()) == 25557032
model = model.to(memory_format=torch.channels_last)
x = (torch.rand(batch, 3, 224, 224, device="cuda") * 2 - 1).to(memory_format=torch.channels_last)
y = torch.randint(1000, (batch,), device="cuda")
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=5e-5, momentum=0.9, fused=True)


def step():
    optimizer.zero_grad(set_to_none=not graphs)
    with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=not graphs):
        loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(20):
        step()
torch.cuda.current_stream().wait_stream(side)
call = step
if graphs:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    call = graph.replay


events.serve(call, 5)
