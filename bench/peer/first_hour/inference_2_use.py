# SPDX-License-Identifier: Apache-2.0
"""examples/cookbook/inference_2_use.cpp in Keras."""
import keras
from digits import digits

model = keras.models.load_model("classifier.keras")
x, labels = digits(5, seed=7)
probabilities = keras.ops.softmax(model.predict(x, verbose=0))
for label, p in zip(labels, probabilities):
    print(f"digit {label}: says {int(p.argmax())}, probability {float(p.max()):.2f}")
