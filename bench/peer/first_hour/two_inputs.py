# SPDX-License-Identifier: Apache-2.0
"""examples/cookbook/two_inputs.cpp in Keras."""
import keras
import numpy as np
from digits import digits

keras.utils.set_random_seed(1)
x, labels = digits(3000)
numbers = np.random.rand(3000, 2).astype("float32")
prices = labels / 9 * numbers[:, 0] * (1 - numbers[:, 1] / 2)
order = np.random.permutation(3000)
train, test = order[:2400], order[2400:]

picture = keras.Input((28, 28, 1), name="picture")
terms = keras.Input((2,), name="terms")
seen = keras.layers.Flatten()(picture)
seen = keras.layers.Dense(32, activation="relu")(seen)
known = keras.layers.Dense(32, activation="relu")(terms)
both = keras.layers.Concatenate()([seen, known])
digit = keras.layers.Dense(10, name="digit")(seen)
hidden = keras.layers.Dense(32, activation="relu")(both)
price = keras.layers.Dense(1, name="price")(hidden)
model = keras.Model([picture, terms], [digit, price])

model.compile(
    optimizer=keras.optimizers.Adam(0.003),
    loss={
        "digit": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "price": keras.losses.MeanSquaredError(),
    },
    loss_weights={"digit": 1, "price": 10},
    metrics={"digit": ["accuracy"], "price": ["mae"]},
)
inputs = {"picture": x, "terms": numbers}
targets = {"digit": labels, "price": prices}


def of(arrays, rows):
    return {name: array[rows] for name, array in arrays.items()}


model.fit(of(inputs, train), of(targets, train), epochs=6, batch_size=50, verbose=0)
result = model.evaluate(of(inputs, test), of(targets, test), return_dict=True, verbose=0)
print(f"digits: {result['digit_accuracy']:.2f} right; prices: {result['price_mae']:.3f} off")
