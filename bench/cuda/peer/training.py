#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the training benches on a GPU: bench/peer/training.py's protocol, timed by events, eager (--eager) or with the
whole step as one CUDA graph (--graphs); the faster of channels-last and plain is the caller's choice."""
import pathlib
import sys

import torch

import events

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "peer"))
import network  # noqa: E402
import training  # noqa: E402

extra = {name: name in sys.argv for name in ("--eager", "--graphs")}
precision = sys.argv[sys.argv.index("--precision") + 1] if "--precision" in sys.argv else "fp32"
at = sys.argv.index("--precision") if "--precision" in sys.argv else None
sys.argv = [a for i, a in enumerate(sys.argv) if a not in extra and not (at is not None and i in (at, at + 1))]

torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
torch.backends.cudnn.benchmark = True


class OnGpu(training.Training):
    def __init__(self, o):
        model, sample, images = network.build(o.network, o.channels_last)
        x, y, loss = network.samples(o.folder, o.batch, sample, images, o.channels_last)
        model = model.cuda()
        super().__init__(o, (model, sample, images), (x.cuda(), y.cuda(), loss))
        self.graph = None

    def reset(self):
        super().reset()
        self.graph = None

    def step(self, x, y):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = self.loss(self.run_model(x), y)
        self.optimizer.zero_grad(set_to_none=not extra["--graphs"])
        loss.backward()
        self.optimizer.step()
        return loss

    def prepare(self):
        """Twenty steps that are not timed; with --graphs the step is captured after them."""
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-3 * self.o.lr
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(20):
                self.step(self.x, self.y)
        torch.cuda.current_stream().wait_stream(side)
        if extra["--graphs"]:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.step(self.x, self.y)
        self.prepared = True

    def run(self, n):
        if not getattr(self, "prepared", False):
            self.prepare()
        call = self.graph.replay if self.graph else (lambda: self.step(self.x, self.y))
        call()
        seconds = events.seconds_of(call, n)
        return seconds, seconds

    def losses(self, k):
        self.prepared = False
        return super().losses(k)


if __name__ == "__main__":
    torch.manual_seed(1)
    training.serve(OnGpu(training.arguments()))
