#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of training benches: the same network, weights and samples as ours, out of raw files.

Reads requests from stdin, a line each: "run N" (N steps: answers seconds of wall and processor time), "losses K" (K steps from
the weights handed over: answers the losses), "age N" (N steps at the full rate: answers the last loss), "fit ACCURACY EPOCHS" (whole trainings in the order of files order0, order1, ...:
answers seconds, epochs, accuracy), "memory" (the most bytes of all tensors within a step). Answers "ready" when it is."""
import argparse
import os
import sys
import time

import torch

import network


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--network", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--momentum", type=float, default=0)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


class Training:
    def __init__(self, o, model=None, data=None):
        self.o = o
        self.model, self.sample, self.images = network.build(o.network, o.channels_last) if model is None else model
        self.x, self.y, self.loss = data or network.samples(o.folder, o.batch, self.sample, self.images, o.channels_last)
        self.reset()

    def reset(self):
        network.load(self.model, os.path.join(self.o.folder, "weights"), self.o.channels_last)
        self.run_model = torch.compile(self.model) if self.o.compile else self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.o.lr, momentum=self.o.momentum, fused=True)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.run_model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, n):
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-3 * self.o.lr
        self.step(self.x, self.y)
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(n):
            self.step(self.x, self.y)
        return time.perf_counter() - wall, time.process_time() - cpu

    def age(self, n):
        """N steps at the full rate: momenta of weights that get no gradient any more decay. The last loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.o.lr
        return [[self.step(self.x, self.y) for _ in range(n)][-1].item()]

    def losses(self, k):
        self.reset()
        return [self.step(self.x, self.y).item() for _ in range(k)]

    def memory(self):
        """The most bytes of all tensors within a step: those that stay, and the running sum of what a step takes and gives back."""
        self.step(self.x, self.y)
        self.optimizer.zero_grad(set_to_none=True)
        state = [v for values in self.optimizer.state.values() for v in values.values() if torch.is_tensor(v)]
        stay = sum(t.numel() * t.element_size() for t in [*self.model.parameters(), *self.model.buffers(), *state])
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            self.step(self.x, self.y)
        now = most = 0
        for event in sorted((e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"), key=lambda e: e.start_ns()):
            now += event.nbytes()
            most = max(most, now)
        return [stay + most]

    def fit(self, wanted, epochs):
        """Until the test accuracy is as wanted: seconds, epochs, accuracy."""
        self.reset()
        x, y, test_x, test_y = network.digits(self.o.folder, self.o.channels_last)
        for w in range(5):
            self.step(x[w * self.o.batch:(w + 1) * self.o.batch], y[w * self.o.batch:(w + 1) * self.o.batch])
        self.reset()
        orders = [network.read(os.path.join(self.o.folder, f"order{e}"), "int64") for e in range(epochs)]
        start = time.perf_counter()
        for epoch in range(epochs):
            for chosen in orders[epoch].split(self.o.batch):
                self.step(x[chosen], y[chosen])
            with torch.inference_mode():
                right = sum((self.run_model(a).argmax(1) == b).sum().item()
                            for a, b in zip(test_x.split(self.o.batch), test_y.split(self.o.batch)))
            if right >= wanted * len(test_y):
                break
        return time.perf_counter() - start, epoch + 1, right / len(test_y)


def serve(training):
    print("ready", flush=True)
    for line in sys.stdin:
        what, *values = line.split()
        if what == "run":
            answer = training.run(int(values[0]))
        elif what == "age":
            answer = training.age(int(values[0]))
        elif what == "memory":
            answer = training.memory()
        elif what == "losses":
            answer = training.losses(int(values[0]))
        else:
            answer = training.fit(float(values[0]), int(values[1]))
        print(*(repr(float(v)) for v in answer), flush=True)


if __name__ == "__main__":
    torch.set_flush_denormal(True)                  # as our workers do; before there are threads, which inherit it
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(1)
    serve(Training(arguments()))
