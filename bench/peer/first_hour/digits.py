# SPDX-License-Identifier: Apache-2.0
"""The digits of sk::data::synthetic_digits(count, seed), as bench/support/first_hour/digits.cpp has written them to this folder: data
of the twins here. The C++ programs call a function of the library, so this file is not counted."""
import numpy as np


def digits(count, seed=1):
    """(count, 28, 28, 1) floats, normalised as the library serves them; (count) class numbers."""
    rows = np.load(f"digits_{seed}.npy")
    if len(rows) < count:
        raise ValueError(f"digits_{seed}.npy has {len(rows)} digits, {count} are wanted")
    pixels = rows[:count, :784].reshape(-1, 28, 28, 1).astype("float32") / 255
    return (pixels - 0.1634) / 0.2532, rows[:count, 784].astype("int64")
