// SPDX-License-Identifier: Apache-2.0
// A whole network beside PyTorch's: weights, samples and labels that both sides draw by one integer hash of the index, and the
// comparison of gradients, by their products with fixed vectors, so that an element in the wrong place shows.
#pragma once
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <skein/data/batch.hpp>
#include <skein/nn/model.hpp>

namespace support {

namespace sk = skein;
namespace nn = skein::nn;

/// What PyTorch made of one network: of each parameter's gradient the products with some fixed vectors and the norm; losses of
/// steps; the loss in evaluation phase. Together: so many parameters, one behind the other, count as one.
struct Expected {
  const std::vector<double>&projections, &norms, &losses, &evaluation;
  int together = 1;
};

/// Value `index` of stream `salt`, within (-scale, scale): as draw() of networks_of_pytorch.py, to the bit.
inline float draw(long index, int salt, double scale) {
  auto h = static_cast<std::uint32_t>(index + salt * 1000003L);
  h = (h ^ (h >> 16)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  h ^= h >> 16;
  const double steps = static_cast<double>(h >> 8) - (8388608 - 0.5);
  return static_cast<float>(steps * (scale / 8388608));
}

/// Calls visit(parameter, logical index, stored index) for every element of every parameter.
template <class Model, class Visit> void each_element(Visit&& visit) {
  int p = 0;
  for (const sk::plan::Entry& e : Model::program.parameters()) {
    const long columns = e.extents.last(), count = e.extents.count();
    for (long i = 0; i < count; ++i) visit(p, e, i, e.offset + i / columns * sk::row_pitch(columns) + i % columns);
    ++p;
  }
}

template <class Model> void set_parameters(Model& model) {
  using Scalar = typename Model::Scalar;
  const auto lease = model.modify();
  Scalar* values = lease.data();
  double scale = 0, center = 0;
  each_element<Model>([&](int p, const sk::plan::Entry& e, long i, long at) {
    if (i == 0) {
      scale = e.fan_in > 0 ? 1 / std::sqrt(static_cast<double>(e.fan_in)) : 0.25;  // else a normalisation
      center = e.init == static_cast<int>(nn::Init::ones) ? 1 : 0;
    }
    values[at] = static_cast<Scalar>(static_cast<float>(static_cast<double>(draw(i, p + 1, scale)) + center));
  });
}

/// The label of a sample, or of a pixel that counts on from sample to sample.
inline std::int32_t label_of(long i, bool of_pixels) {
  return static_cast<std::int32_t>(of_pixels ? (i / 7 * 5 + i % 7) % 3 : (7 * i + 3) % 10);
}

/// The samples and labels of the fixtures, in memory of their own; as many labels a sample as the output has positions.
template <class Model> struct Samples {
  using Scalar = typename Model::Scalar;
  static constexpr long pitch = sk::sample_pitch(Model::input::extents), length = Model::input::count;
  sk::Arena<Scalar, sk::Cpu> x;
  std::vector<std::int32_t> labels;

  static constexpr long each = Model::output_extents.count() / Model::output_extents.last();

  explicit Samples(long count) : x(static_cast<std::size_t>(count * pitch)), labels(static_cast<std::size_t>(count * each)) {
    for (long i = 0; i < count * each; ++i) labels[static_cast<std::size_t>(i)] = label_of(i, each > 1);
    for (long i = 0; i < count; ++i) {
      for (long k = 0; k < length; ++k) x.data()[i * pitch + k] = static_cast<Scalar>(draw(i * length + k, 100, 1));
    }
  }
  sk::data::Batch<Scalar> batch() const {
    sk::data::Batch<Scalar> b;
    b.x = x.data();
    b.pitch = pitch;
    b.sample = Model::input::extents;
    b.labels = labels.data();
    b.labels_each = each;
    b.count = b.global_count = static_cast<long>(labels.size()) / each;
    return b;
  }
};

/// |a - b| over |b|, or over `floor` where b is less: to be below a tolerance.
inline double apart_from(double a, double b, double floor = 0) { return std::abs(a - b) / std::max(std::abs(b), floor); }

/// Projections of the gradients in the arena, of worker 0: the whole gradient where there is no other.
template <class Model> void check_gradients(const Model& model, const Expected& expected, double tolerance) {
  const int parameters = static_cast<int>(Model::program.parameters().size());
  const int groups = (parameters + expected.together - 1) / expected.together;
  const int vectors = static_cast<int>(expected.projections.size()) / groups;
  std::vector<double> projections(static_cast<std::size_t>(vectors * groups)), squares(static_cast<std::size_t>(groups));
  long counted = 0;  // elements of the group
  each_element<Model>([&](int p, const sk::plan::Entry&, long i, long at) {
    if (i == 0 && p % expected.together == 0) counted = 0;
    ++counted;
    const double g = static_cast<double>(model.gradients().data[at]);
    const int group = p / expected.together;
    for (int k = 0; k < vectors; ++k)
      projections[static_cast<std::size_t>(vectors * group + k)] += g * std::cos(static_cast<double>((k + 1) * counted));
    squares[static_cast<std::size_t>(group)] += g * g;
  });
  REQUIRE(projections.size() == expected.projections.size());
  REQUIRE(squares.size() == expected.norms.size());
  double largest = 0;
  for (double n : expected.norms) largest = std::max(largest, n);
  for (std::size_t k = 0; k < projections.size(); ++k) {
    const std::size_t p = k / static_cast<std::size_t>(vectors);
    // A bias before BatchNorm has a gradient of zero, to rounding: what cancels in it is of the size of the other gradients.
    const double scale = std::max(expected.norms[p], 0.01 * largest);
    INFO((expected.together > 1 ? "group " : "parameter ")
         << p << ", vector " << k % static_cast<std::size_t>(vectors) + 1 << ": " << projections[k] << " for "
         << expected.projections[k] << ", apart by " << projections[k] - expected.projections[k] << ", norm "
         << expected.norms[p]);
    CHECK(apart_from(projections[k], expected.projections[k], scale) <= tolerance);
    CHECK(apart_from(std::sqrt(squares[p]), expected.norms[p], scale) <= tolerance);
  }
}

}  // namespace support
