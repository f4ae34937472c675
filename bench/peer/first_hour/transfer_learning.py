# SPDX-License-Identifier: Apache-2.0
"""examples/cookbook/transfer_learning.cpp in Keras."""
import keras
from digits import digits

keras.utils.set_random_seed(1)
x, labels = digits(2000)
body = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
    ]
)
model = keras.Sequential([body, keras.layers.Dense(10)])
model.compile(
    optimizer=keras.optimizers.Adam(0.005),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
model.fit(x, labels, epochs=4, batch_size=50, verbose=0)
model.save("digits.keras")

body = keras.models.load_model("digits.keras").layers[0]
body.trainable = False
odd = keras.Sequential([body, keras.layers.Dense(2)])
odd.compile(
    optimizer=keras.optimizers.Adam(0.005),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
odd.fit(x[:300], labels[:300] % 2, epochs=10, batch_size=25, verbose=0)
accuracy = odd.evaluate(x[300:], labels[300:] % 2, verbose=0)[1]
print(f"odd or even, with 300 samples: {100 * accuracy:.1f} % right")
