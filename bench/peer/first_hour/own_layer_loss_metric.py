# SPDX-License-Identifier: Apache-2.0
"""examples/cookbook/own_layer_loss_metric.cpp in Keras."""
import keras
import numpy as np
from keras import ops


class Scale(keras.layers.Layer):
    """y = scale * x, with one trained factor for each feature."""

    def build(self, input_shape):
        self.scale = self.add_weight(name="scale", shape=(input_shape[-1],), initializer="ones")

    def call(self, x):
        return self.scale * x


def log_cosh(target, output):
    d = ops.abs(output - target)
    return ops.mean(d + ops.log1p(ops.exp(-2 * d)) - 0.6931471805599453, axis=-1)


def within(target, output):
    return ops.cast(ops.abs(output - target) < 0.1, "float32")


keras.utils.set_random_seed(1)
x = np.linspace(-1, 1, 2000, endpoint=False, dtype="float32")[:, None]
y = np.sin(3 * x)
order = np.random.permutation(2000)
train, test = order[:1600], order[1600:]

model = keras.Sequential(
    [
        keras.Input((1,)),
        keras.layers.Dense(32, activation="tanh"),
        Scale(),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss=log_cosh, metrics=[within])
model.fit(x[train], y[train], epochs=10, batch_size=20, verbose=0)
loss, share = model.evaluate(x[test], y[test], verbose=0)
print(f"loss {loss:.5f}, within 0.1: {share:.2f}")
