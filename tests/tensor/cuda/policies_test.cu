// SPDX-License-Identifier: Apache-2.0
// The evaluator, the reductions, random fills and sorting of tensor/cuda/ by execution policies of the host, on the host's
// memory: the same function objects that a GPU runs, against the Cpu's evaluator.
#include <skein/tensor/create.hpp>
#include <skein/tensor/cuda/evaluator.hpp>
#include <skein/tensor/cuda/reducer.hpp>
#include <skein/tensor/cuda/sorter.hpp>
#include <skein/tensor/reduce.hpp>

#if defined(_OPENMP)
#include <thrust/system/omp/execution_policy.h>
#endif
#include <thrust/execution_policy.h>

#include <limits>

#include <catch2/catch.hpp>
#include "../support.hpp"

using namespace tensor_test;
using sk::range;

namespace {

/// What evaluate() does, but by a policy.
template <class Policy, class S, int R, class E>
void assign_by(const Policy& policy, const sk::TensorView<S, R>& to, const E& e) {
  namespace in = sk::detail;
  const auto node = in::leaf(e);
  constexpr int N = R > 1 ? R : 1;
  in::Loop<N> loop{in::padded<N>(to.extents, 1), in::padded<N>(to.strides, 0)};
  auto bound = node.template bind<N>(loop.extents);
  in::sort_axes(loop, bound);
  in::collapse(loop, bound);
  sk::cuda::assign(policy, to.data, loop, bound);
}
template <class Op, class Policy, class E> auto reduce_by(const Policy& policy, const E& e) {
  namespace in = sk::detail;
  const auto node = in::leaf(e);
  constexpr int N = std::remove_cvref_t<decltype(node)>::rank;
  in::Loop<N> loop{node.shape(), {}};
  auto bound = node.template bind<N>(loop.extents);
  in::collapse(loop, bound);
  return sk::cuda::fold_all<in::TotalFold<Op, typename E::Scalar, typename Op::Total>>(policy, loop, bound);
}
template <class Better, class Policy, class E> long place_by(const Policy& policy, const E& e) {
  namespace in = sk::detail;
  const auto node = in::leaf(e);
  constexpr int N = std::remove_cvref_t<decltype(node)>::rank;
  in::Loop<N> loop{node.shape(), sk::row_major(node.shape())};
  auto bound = node.template bind<N>(loop.extents);
  in::collapse(loop, bound);
  return sk::cuda::fold_all<in::ArgFold<Better, typename E::Scalar>>(policy, loop, bound).index;
}
template <class R, class Fold, class Policy, class E> auto reduce_axis_by(const Policy& policy, const E& e, int axis, Fold fold) {
  namespace in = sk::detail;
  const auto node = in::leaf(e);
  constexpr int N = std::remove_cvref_t<decltype(node)>::rank;
  sk::Tensor<R, N - 1> result(in::without_axis(node.shape(), axis));
  auto loop = in::axis_loop(node.shape(), axis);
  auto bound = node.template bind<N>(loop.extents);
  const int place = in::collapse(loop, bound, axis);
  in::Reducer<sk::Cuda>::run(policy, result.data(), loop, bound, place, fold);
  return result;
}

/// Sums of integers are exact, those of floats rounded in another order.
template <class S> bool near(S a, S b, double magnitude) {
  if constexpr (std::is_integral_v<S>) return a == b;
  else return support::close(a, b, support::Roundings::sum, magnitude);
}

/// body(policy) for each policy of the host.
template <class Body> void by_each_policy(Body&& body) {
  body(thrust::seq);
#if defined(_OPENMP)
  body(thrust::omp::par);
#endif
}

}  // namespace

TEMPLATE_TEST_CASE("policies of the host assign what the Cpu assigns, in any layout", "", float, double, int, long) {
  using S = TestType;
  by_each_policy([](const auto& policy) {
    const auto source = values<S>(sk::dims(5, 6, 20), 1, -9, 9);
    const auto other = values<S>(sk::dims(6, 20), 2, -9, 9);
    const auto column = values<S>(sk::dims(6, 1), 3, -9, 9);
    const auto check = [&](const auto& to, const auto& e) {
      sk::Tensor<S, std::remove_cvref_t<decltype(to)>::rank> expected(to.extents);
      expected.view().assign(e);
      assign_by(policy, to, e);
      CHECK(list(to) == list(expected));
    };
    sk::Tensor<S, 3> memory(sk::dims(20, 20, 20)), dense(source.shape());
    check(dense.view(), source * S(2) + source);   // one row, in packs
    check(dense.view(), source + other - column);  // broadcast: packs in several rows
    check(dense.view(), sk::full(sk::dims(1), S(7)));
    check(dense.view(), where(source > other, source, column));
    check(dense(range(1, 4), sk::all, range(0, 17)), other(sk::all, range(3)));                   // not aligned
    check(dense(sk::all, sk::all, range(1, 18)), source(sk::all, sk::all, range(2, 19)) * S(3));  // ends
    const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (const auto& o : orders)
      for (long step : {1L, 2L}) {
        long inverse[3];
        for (int i = 0; i < 3; ++i) inverse[o[i]] = i;
        const long e[3] = {5, 6, 20 / step};
        memory = S(99);
        const auto block = memory(range(0, e[o[0]]), range(0, e[o[1]]), range(0, e[o[2]]));
        check(block.permute(inverse[0], inverse[1], inverse[2]),
              source(sk::all, sk::all, range(0, 20, step)).reverse(1) + other(sk::all, range(0, 20, step)).reverse(1));
        long untouched = 0;
        for (S x : memory) untouched += x == S(99);
        CHECK(untouched >= 8000 - e[0] * e[1] * e[2]);
        CHECK(untouched - 8000 + e[0] * e[1] * e[2] < 3);  // a sum may be 99, seldom
      }
    sk::Tensor<S, 1> odd(sk::dims(1027));
    check(odd.view(), sk::arange(S(1027)) - S(1));
    check(odd(range(1)), odd.copy()(range(0, 1026)));
  });
}

TEST_CASE("policies of the host convert and compare as the Cpu does") {
  by_each_policy([](const auto& policy) {
    const auto a = values<float>(sk::dims(7, 33), 1);
    const auto b = values<double>(sk::dims(7, 33), 2);
    sk::Tensor<bool, 2> mask(a.shape());
    sk::Tensor<double, 2> wide(a.shape());
    assign_by(policy, mask.view(), a > 0 && sk::cast<float>(b) < 1);
    CHECK(list(mask) == list(a > 0 && sk::cast<float>(b) < 1));
    assign_by(policy, wide.view(), sk::cast<double>(a) * b);
    CHECK(list(wide) == list(sk::cast<double>(a) * b));
    sk::Tensor<float, 2> smooth(a.shape());
    assign_by(policy, smooth.view(), sigmoid(a) + tanh(a) * exp(-abs(a)) + sqrt(square(a)));
    const sk::Tensor<float, 2> expected = sigmoid(a) + tanh(a) * exp(-abs(a)) + sqrt(square(a));
    for (long i = 0; i < a.size(); ++i)
      REQUIRE(support::close(smooth.data()[i], expected.data()[i], support::Roundings::arithmetic, 8));
  });
}

TEMPLATE_TEST_CASE("policies of the host reduce as the Cpu does", "", float, double, int, long) {
  using S = TestType;
  namespace in = sk::detail;
  by_each_policy([](const auto& policy) {
    for (long inner : {1L, 3L, 16L, 300L}) {
      const auto dense = values<S>(sk::dims(5, 40, inner), 1, -99, 99);
      const auto memory = values<S>(sk::dims(inner, 42, 5), 2, -99, 99);
      const auto check = [&](const auto& a) {
        using Sum = decltype(sum(a));
        const double scale = 99. * static_cast<double>(a.size());
        CHECK(near(static_cast<Sum>(reduce_by<in::SumOf<S>>(policy, a * S(1))), sum(a), scale));
        CHECK(reduce_by<in::MaxOf<S>>(policy, a * S(1)) == max(a));
        CHECK(reduce_by<in::MinOf<S>>(policy, a * S(1)) == min(a));
        CHECK(place_by<sk::functions::Greater>(policy, a * S(1)) == argmax(a));
        CHECK(place_by<sk::functions::Less>(policy, a * S(1)) == argmin(a));
        for (int axis = 0; axis < 3; ++axis) {
          const auto sums = reduce_axis_by<Sum>(policy, a, axis, in::TotalFold<in::SumOf<S>, S, Sum>{});
          const auto expected = sum(a, axis);
          for (long i = 0; i < sums.size(); ++i) REQUIRE(near(sums.data()[i], expected.data()[i], 99 * 300));
          CHECK(list(reduce_axis_by<S>(policy, a, axis, in::TotalFold<in::MaxOf<S>, S, S>{})) == list(max(a, axis)));
          CHECK(list(reduce_axis_by<S>(policy, a, axis, in::TotalFold<in::MinOf<S>, S, S>{})) == list(min(a, axis)));
          CHECK(list(reduce_axis_by<long>(policy, a, axis, in::ArgFold<sk::functions::Greater, S>{})) == list(argmax(a, axis)));
          CHECK(list(reduce_axis_by<long>(policy, a, axis, in::ArgFold<sk::functions::Less, S>{})) == list(argmin(a, axis)));
        }
      };
      check(dense.view());
      check(memory(sk::all, range(1, 41)).transpose());
    }
    const auto equal = sk::zeros<S>(3, 50);
    CHECK(place_by<sk::functions::Greater>(policy, equal) == 0);
    CHECK(list(reduce_axis_by<long>(policy, equal, 1, in::ArgFold<sk::functions::Less, S>{})) == std::vector<long>{0, 0, 0});
  });
}

TEST_CASE("few outputs of long axes are reduced in parts") {
  namespace in = sk::detail;
  by_each_policy([](const auto& policy) {
    const auto a = values<float>(sk::dims(20011, 3), 1);
    const auto check = [&](const auto& m, int axis) {
      const auto sums = reduce_axis_by<float>(policy, m, axis, in::TotalFold<in::SumOf<float>, float, float>{in::Finish{20011.}});
      const auto expected = mean(m, axis);
      for (long i = 0; i < 3; ++i) CHECK(support::close(sums(i), expected(i), support::Roundings::sum, 1));
      CHECK(list(reduce_axis_by<long>(policy, m, axis, in::ArgFold<sk::functions::Greater, float>{})) == list(argmax(m, axis)));
    };
    check(a.view(), 0);
    check(a.transpose(), 1);
    const sk::Tensor<float, 2> rows = a.transpose();
    check(rows.view(), 1);
  });
}

TEST_CASE("axes of every length are reduced alike with four totals a lane and with one") {
  namespace in = sk::detail;
  by_each_policy([](const auto& policy) {
    for (const long length : {1L, 3L, 4L, 5L, 15L, 16L, 17L, 63L, 64L, 65L, 66L, 67L, 4099L}) {
      const auto a = values<double>(sk::dims(length, 3), 1, -99, 99);
      const auto both = [&](auto r, const auto& m, int axis, auto fold) {
        using R = decltype(r);
        const sk::cuda::PlainKernels plain;
        const auto one = list(reduce_axis_by<R>(policy, m, axis, fold));
        const sk::cuda::PlainKernels ahead(false);
        return std::pair(one, list(reduce_axis_by<R>(policy, m, axis, fold)));
      };
      for (const bool transposed : {false, true}) {
        const sk::Tensor<double, 2> m = transposed ? sk::Tensor<double, 2>(a.transpose()) : a.copy();
        const int axis = transposed ? 1 : 0;
        const auto [one, four] = both(0.0, m, axis, in::TotalFold<in::SumOf<double>, double, double>{});
        REQUIRE(one.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) CHECK(four[i] == Approx(one[i]).epsilon(1e-13).margin(1e-10));
        const auto [first, place] = both(0L, m, axis, in::ArgFold<sk::functions::Greater, double>{});
        CHECK(first == place);
      }
    }
  });
}

TEST_CASE("NaNs are passed over by extremes of every policy, and the first of equals counts") {
  namespace in = sk::detail;
  const double none = std::numeric_limits<double>::quiet_NaN();
  by_each_policy([&](const auto& policy) {
    const sk::Tensor<double, 2> a{{none, 2, 5, none, 5, -1, -1, none}, {none, none, none, none, none, none, none, none}};
    CHECK(reduce_by<in::MaxOf<double>>(policy, a) == 5);
    CHECK(reduce_by<in::MinOf<double>>(policy, a(0)) == -1);
    CHECK(list(reduce_axis_by<long>(policy, a, 1, in::ArgFold<sk::functions::Greater, double>{})) == std::vector<long>{2, 0});
    CHECK(list(argmax(a, 1)) == std::vector<long>{2, 0});
    CHECK(list(reduce_axis_by<long>(policy, a, 1, in::ArgFold<sk::functions::Less, double>{})) == std::vector<long>{5, 0});
    CHECK(place_by<sk::functions::Less>(policy, a) == argmin(a));
  });
}

TEST_CASE("random fills by every policy are the Cpu's") {
  by_each_policy([](const auto& policy) {
    sk::Tensor<float, 2> a(sk::dims(11, 24)), n(a.shape());
    assign_by(policy, a.view(), sk::uniform<float>(sk::Seed{5}, a.shape(), -1, 3));
    CHECK(list(a) == list(sk::uniform<float>(sk::Seed{5}, a.shape(), -1, 3)));
    assign_by(policy, n.view(), sk::normal<float>(sk::Seed{5}, a.shape(), 1, 2, 7));
    CHECK(list(n) == list(sk::normal<float>(sk::Seed{5}, a.shape(), 1, 2, 7)));
    const auto window = a(sk::all, range(1, 20)).transpose();
    assign_by(policy, window, sk::uniform<float>(sk::Seed{6}, window.shape()));
    CHECK(list(window) == list(sk::uniform<float>(sk::Seed{6}, window.shape())));
  });
}

TEMPLATE_TEST_CASE("every policy sorts as the Cpu does", "", float, int) {
  using S = TestType;
  by_each_policy([](const auto& policy) {
    const auto check = [&](auto before, const sk::Tensor<S, 1>& sorted, const sk::Tensor<long, 1>& order,
                           const sk::Tensor<S, 1>& v) {
      using Before = decltype(before);
      auto values = v.copy(), keys = v.copy();
      sk::Tensor<long, 1> indices(v.shape());
      sk::cuda::SortValues<S, Before>{values.data(), v.size(), before}(policy);
      sk::cuda::SortIndices<S, Before>{indices.data(), keys.data(), v.size(), before}(policy);
      CHECK(list(values) == list(sorted));
      CHECK(list(indices) == list(order));
    };
    const auto v = values<S>(sk::dims(5003), 1, -50, 50);
    check(sk::functions::Before<sk::Order::ascending>{}, sk::sort(v), sk::argsort(v), v);
    check(sk::functions::Before<sk::Order::descending>{}, sk::sort<sk::Order::descending>(v),
          sk::argsort<sk::Order::descending>(v), v);
  });
}
