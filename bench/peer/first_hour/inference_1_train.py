# SPDX-License-Identifier: Apache-2.0
"""examples/cookbook/inference_1_train.cpp in Keras."""
import keras
from digits import digits

x, labels = digits(2000)
model = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(0.005),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
model.fit(x, labels, epochs=4, batch_size=50, verbose=0)
model.save("classifier.keras")
