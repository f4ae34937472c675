// SPDX-License-Identifier: Apache-2.0
#include <skein/device/batch_view.hpp>

#include <type_traits>
#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;

namespace {
struct Derived : sk::BatchView<double> {
  int more = 0;
};
struct Mine {  // nobody's base
  double* x = nullptr;
  double* targets = nullptr;
  const std::int32_t* labels = nullptr;
  int pitch = 0, target_pitch = 0, count = 0, global_count = 0;
  long first = 0;
  short held = 0;
};
struct WithoutFirst {
  double *x, *targets;
  const std::int32_t* labels;
  long pitch, target_pitch, count, global_count;
  int held;
};
struct ShortLabels : Mine {
  const short* labels = nullptr;
};
}  // namespace

TEST_CASE("a batch is what has the members of a view, in the model's scalar") {
  static_assert(sk::Batch<sk::BatchView<float>, float> && sk::Batch<sk::BatchView<double, sk::Cuda>, double>);
  static_assert(sk::Batch<Derived, double> && sk::Batch<Mine, double>);
  static_assert(!sk::Batch<Derived, float> && !sk::Batch<WithoutFirst, double> && !sk::Batch<ShortLabels, double>);
  static_assert(!sk::Batch<int, float> && !sk::Batch<double*, double>);
  static_assert(std::is_trivially_copyable_v<sk::BatchView<float, sk::Cuda>>);
}

TEST_CASE("what derives from a view is seen without a copy, another batch member by member") {
  Derived d;
  static_assert(std::is_same_v<decltype(sk::batch_view<double, sk::Cpu>(d)), const sk::BatchView<double>&>);
  CHECK(&sk::batch_view<double, sk::Cpu>(d) == static_cast<const sk::BatchView<double>*>(&d));

  double x = 0, targets = 0;
  const std::int32_t labels = 0;
  const Mine mine{&x, &targets, &labels, 1, 2, 3, 4, 5, 6};
  const auto view = sk::batch_view<double, sk::Cpu>(mine);
  CHECK((view.x == &x && view.targets == &targets && view.labels == &labels));
  CHECK((view.pitch == 1 && view.target_pitch == 2 && view.count == 3 && view.global_count == 4 && view.first == 5));
  CHECK((view.held == 6 && view.labels_each == 1));
}

TEST_CASE("a part of a batch has its own samples, labels, targets and place in the epoch") {
  std::vector<float> x(5 * 3), y(5 * 2);
  std::vector<std::int32_t> labels(5);
  sk::BatchView<float> all{x.data(), 3, labels.data(), y.data(), 2, 5, 40, 100, 2};
  const auto part = all.part(2, 4);
  CHECK((part.x == x.data() + 6 && part.labels == labels.data() + 2 && part.targets == y.data() + 4));
  CHECK((part.count == 2 && part.first == 102 && part.global_count == 40 && part.held == 2));
  CHECK((part.pitch == 3 && part.target_pitch == 2));
  CHECK((part.row(1) == x.data() + 9 && part.target(1) == y.data() + 6));

  all.labels_each = 2;  // labels of five samples, two each
  labels.resize(10);
  all.labels = labels.data();
  CHECK(all.part(2, 4).labels == labels.data() + 4);
  const std::vector<std::int32_t> tokens(15);
  all.tokens = tokens.data();
  CHECK(all.part(2, 4).tokens == tokens.data() + 6);

  all.x = nullptr;
  all.tokens = nullptr;
  all.labels = nullptr;
  all.targets = nullptr;
  const auto nothing = all.part(1, 3);
  CHECK((nothing.x == nullptr && nothing.labels == nullptr && nothing.targets == nullptr && nothing.count == 2));
}
