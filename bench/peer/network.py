# SPDX-License-Identifier: Apache-2.0
"""Networks out of words ("28,28,1 conv:6:5:1:2 relu pool:2 flatten linear:10"), and our raw files in PyTorch's layouts.

Ours: images NHWC, linear weights (in, out), convolution weights (kernel, kernel, in, out), all parameters in one file."""
import os

import numpy as np
import torch
from torch import nn


class FlattenLast(nn.Module):
    """Of a channels-last image, without a copy: height, width, channels."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


class LastState(nn.Module):
    """An LSTM over (batch, steps, values), and of its states the last."""

    def __init__(self, values, hidden):
        super().__init__()
        self.lstm = nn.LSTM(values, hidden, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0][:, -1]


class CifarBlock(nn.Module):
    """Two convolutions past a shortcut, which takes every second pixel and pads channels with zeros (option A) where they differ."""

    def __init__(self, channels, width):
        super().__init__()
        self.stride, self.padding = width // channels, (width - channels) // 2
        self.conv1, self.norm1 = nn.Conv2d(channels, width, 3, self.stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        if self.padding:
            x = nn.functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.padding, self.padding))
        return torch.relu(x + y)


class GlobalAvgPool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def cifar_resnet(channels, depth):
    """All but the head."""
    layers, width = [nn.Conv2d(channels, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for wider in (16, 32, 64):
        for _ in range((depth - 2) // 6):
            layers.append(CifarBlock(width, wider))
            width = wider
    return nn.Sequential(*layers, GlobalAvgPool())


def build(words, channels_last):
    """(network, extents of a sample, whether they are images)."""
    first, *rest = words.split()
    sample = [int(v) for v in first.split(",")]
    layers, images = [], len(sample) == 3
    x = torch.zeros(1, sample[2], sample[0], sample[1]) if images else torch.zeros(1, *sample)
    for word in rest:
        kind, *numbers = word.split(":")
        n = [int(v) for v in numbers]
        if kind == "conv":
            layers.append(nn.Conv2d(x.shape[1], n[0], n[1], stride=n[2], padding=n[3]))
        elif kind == "pool":
            layers.append(nn.MaxPool2d(*n))
        elif kind == "lstm":
            layers.append(LastState(x.shape[2], n[0]))
        elif kind == "cifar_resnet":
            layers.append(cifar_resnet(x.shape[1], n[0]))
        elif kind == "linear":
            layers.append(nn.Linear(x.shape[1], n[0]))
        elif kind == "flatten":
            layers.append(FlattenLast() if channels_last else nn.Flatten())
            layers[-1].image = tuple(x.shape[1:])
        else:
            layers.append(nn.ReLU())
        with torch.no_grad():
            x = layers[-1](x)
    model = nn.Sequential(*layers)
    return model.to(memory_format=torch.channels_last) if channels_last else model, sample, images


def read(path, dtype):
    return torch.from_numpy(np.fromfile(path, dtype=dtype))


def load(model, path, channels_last):
    values, at, image = read(path, "float32"), 0, None

    def take(*shape):
        nonlocal at
        count = int(np.prod(shape))
        at += count
        return values[at - count:at].reshape(shape)

    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, (nn.Flatten, FlattenLast)):
                image = layer.image
            if isinstance(layer, nn.Conv2d):
                out, each, height, width = layer.weight.shape
                layer.weight.copy_(take(height, width, each, out).permute(3, 2, 0, 1))
                if layer.bias is not None:
                    layer.bias.copy_(take(out))
            if isinstance(layer, nn.BatchNorm2d):
                layer.weight.copy_(take(layer.num_features))
                layer.bias.copy_(take(layer.num_features))
                layer.reset_running_stats()
            if isinstance(layer, LastState):
                for weight in (layer.lstm.weight_ih_l0, layer.lstm.weight_hh_l0):
                    weight.copy_(take(weight.shape[1], weight.shape[0]).T)
                for bias in (layer.lstm.bias_ih_l0, layer.lstm.bias_hh_l0):
                    bias.copy_(take(bias.shape[0]))
            if isinstance(layer, nn.Linear):
                out, count = layer.weight.shape
                weight = take(count, out)
                if image and not channels_last:
                    channels, height, width = image
                    weight = weight.reshape(height, width, channels, out).permute(2, 0, 1, 3).reshape(count, out)
                image = None
                layer.weight.copy_(weight.T)
                layer.bias.copy_(take(out))
    assert at == len(values), "the file holds more parameters than the network has"


def samples(folder, batch, sample, images, channels_last):
    """(x, y, loss function)."""
    x = read(os.path.join(folder, "x"), "float32").reshape(batch, *sample)
    if images:
        x = laid_out(x.permute(0, 3, 1, 2), channels_last)
    labels = os.path.join(folder, "labels")
    if os.path.exists(labels):
        return x, read(labels, "int32").long(), nn.functional.cross_entropy
    return x, read(os.path.join(folder, "targets"), "float32").reshape(batch, -1), nn.functional.mse_loss


def laid_out(images, channels_last):
    return images.contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


def digits(folder, channels_last):
    """Training images and labels, test images and labels, in memory."""
    def part(name):
        x = (read(os.path.join(folder, name + ".images"), "uint8").reshape(-1, 1, 28, 28).float() / 255 - 0.1307) / 0.3081
        return laid_out(x, channels_last), read(os.path.join(folder, name + ".labels"), "int32").long()
    return *part("train"), *part("test")
