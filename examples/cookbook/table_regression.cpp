// SPDX-License-Identifier: Apache-2.0
// Regression on a table: numbers and categories, missing values, standardised columns, a split, and a prediction for a new row.
#include <skein/skein.hpp>

#include <cstdio>
#include <fstream>
namespace sk = skein;

// [quote write]
/// Stands for a file that one has: flats with their rents, in which some areas are missing.
void write_flats() {
  std::ofstream file("flats.csv");
  file << "area,rooms,town,rent\n";
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const double area = 20 + 100 * sk::random_uniform(1, 0, i), rooms = 1 + static_cast<int>(area / 30);
    const bool city = sk::random_uniform(1, 1, i) < 0.5f;
    const double rent = 100 + (city ? 14 : 9) * area + 20 * rooms + 30 * sk::random_normal(1, 2, i);
    if (i % 50 != 7) file << area;
    file << "," << rooms << "," << (city ? "city" : "village") << "," << rent << "\n";
  }
}
// [end]

// [quote network]
using Net = sk::nn::Sequential<sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<1>>;
using Model = sk::Model<Net, sk::Shape<4>>;  // area, rooms, town = city, town = village
// [end]

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    write_flats();
    // [quote train]
    const auto [training, test] = sk::data::split(sk::data::read_csv("flats.csv"), 0.8, sk::Seed{1});
    sk::data::TableEncoder encoder;
    encoder.standardize({"area", "rooms"}, {.missing = sk::data::Fill::median}).one_hot({"town"}).standardize_target({"rent"});
    const auto train = encoder.fit(training).encode(training), validate = encoder.encode(test);

    Model model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Adam{.lr = 0.01f}};
    trainer.keep(encoder);  // goes into the file with the model
    const sk::History history = trainer.fit(
        train, {.epochs = 20, .batch = 32, .validate = validate, .metrics = {sk::train::MeanAbsoluteError{}}, .progress = false});
    trainer.save("rents.skein");
    std::printf("mean absolute error %.2f standard deviations\n", history.back().validation["mean absolute error"]);
    // [end]

    // [quote predict]
    Model loaded;
    sk::Predictor predictor{loaded};
    predictor.load("rents.skein");
    const auto rents = predictor.predict(sk::data::parse_csv("area,rooms,town\n50,2,city\n50,2,village\n"));  // (2, 1)
    std::printf("50 square metres: %.0f in the city, %.0f in a village\n", double(rents(0, 0)), double(rents(1, 0)));
    // [end]
  });
}
