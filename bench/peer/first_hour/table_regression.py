# SPDX-License-Identifier: Apache-2.0
"""examples/cookbook/table_regression.cpp in Keras, with pandas and scikit-learn. Reads the table that the C++ program has written."""
import joblib
import keras
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

keras.utils.set_random_seed(1)
flats = pd.read_csv("flats.csv")
training, test = train_test_split(flats, test_size=0.2, random_state=1)
numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
encoder = ColumnTransformer(
    [
        ("numbers", numbers, ["area", "rooms"]),
        ("categories", OneHotEncoder(), ["town"]),
    ]
)
scaler = StandardScaler()
train_x = encoder.fit_transform(training)
train_y = scaler.fit_transform(training[["rent"]])
test_x, test_y = encoder.transform(test), scaler.transform(test[["rent"]])

model = keras.Sequential(
    [
        keras.Input((4,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
model.fit(train_x, train_y, epochs=20, batch_size=32, verbose=0)
error = model.evaluate(test_x, test_y, verbose=0)[1]
model.save("rents.keras")
joblib.dump((encoder, scaler), "rents.joblib")
print(f"mean absolute error {error:.2f} standard deviations")

loaded = keras.models.load_model("rents.keras")
encoder, scaler = joblib.load("rents.joblib")
new = pd.DataFrame({"area": [50, 50], "rooms": [2, 2], "town": ["city", "village"]})
rents = scaler.inverse_transform(loaded.predict(encoder.transform(new), verbose=0))
print(f"50 square metres: {rents[0, 0]:.0f} in the city, {rents[1, 0]:.0f} in a village")
