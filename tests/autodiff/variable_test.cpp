// SPDX-License-Identifier: Apache-2.0
#include <skein/autodiff/variable.hpp>

#include <catch2/catch.hpp>
#include <layer_harness.hpp>

using namespace skein;
using autodiff::constant;
using autodiff::Variable;

namespace {

template <class V> concept HasLeaf = requires(V&& x) { std::forward<V>(x).leaf(); };

template <int R> Tensor<double, R> values(const Dims<R>& shape, std::uint64_t seed, double low = 0.3, double high = 1.7) {
  return Tensor<double, R>(uniform<double>(Seed{seed}, shape, low, high));
}

/// Compares the gradient of the number f(x) with differences in the middle, element by element.
template <int R, class F> void check_gradient(const char* what, Tensor<double, R> at, F f) {
  INFO(what);
  Variable<double, R> x(at.copy());
  f(x).backward();
  const double h = 1e-5;
  for (long i = 0; i < at.size(); ++i) {
    const double kept = at.data()[i];
    at.data()[i] = kept + h;
    const double up = f(Variable<double, R>(at.copy())).value().item();
    at.data()[i] = kept - h;
    const double down = f(Variable<double, R>(at.copy())).value().item();
    at.data()[i] = kept;
    CHECK(x.gradient().data()[i] == Approx((up - down) / (2 * h)).epsilon(1e-7).margin(1e-8));
  }
}

struct Swish {
  template <class T> constexpr T operator()(const T& x) const { return x / (T(1) + exp(-x)); }
};

struct Scaled {
  double factor = 1;
  template <class T> constexpr T operator()(const T& x) const { return x * x * factor; }
};

}  // namespace

TEST_CASE("gradients of every operation equal finite differences") {
  const auto w = constant(values(dims(3, 4), 1)), square_matrix = constant(values(dims(4, 3), 4));
  const auto v = constant(values(dims(4), 2));
  const Dims<2> shape = dims(3, 4);
  check_gradient("plus and minus", values(shape, 5), [&](auto x) { return sum((x + w) - (2 - x) + (x - 3) + (1 + x)); });
  check_gradient("times", values(shape, 5), [&](auto x) { return sum(x * w * 2.0 * x); });
  check_gradient("divided", values(shape, 5), [&](auto x) { return sum(w / x + x / w + 2 / x + x / 3); });
  check_gradient("powers", values(shape, 5), [&](auto x) { return sum(pow(x, 3) + square(x) + sqrt(x)); });
  check_gradient("exponentials", values(shape, 5), [&](auto x) { return sum(exp(x) + log(x) + tanh(x) + sigmoid(x) + erf(x)); });
  check_gradient("waves", values(shape, 5), [&](auto x) { return sum(sin(x) * cos(x)); });
  check_gradient("corners", values(shape, 5, -1, 1), [&](auto x) { return sum(relu(x) * w + abs(x)); });
  check_gradient("a function of one's own", values(shape, 5), [&](auto x) { return sum(apply(Swish{}, x) * w); });
  CHECK(apply(Scaled{3}, constant(Tensor<double, 1>{2})).value()(0) == 12);  // by the object that was given
  check_gradient("a function of one's own that holds a number", values(shape, 5),
                 [&](auto x) { return sum(apply(Scaled{3}, x) * w); });
  check_gradient("negation", values(shape, 5), [&](auto x) { return sum(-x * x); });
  check_gradient("mean", values(shape, 5), [&](auto x) { return mean(x * x) + sum(x) * 0.1; });
  check_gradient("sums along axes", values(shape, 5), [&](auto x) { return sum(sum(x * x, 0) * sum(x, 1)); });
  check_gradient("broadcast over rows", values(dims(4), 6), [&](auto x) { return sum(w * x * x); });
  check_gradient("broadcast over columns", values(dims(3, 1), 6), [&](auto x) { return sum(w / x); });
  check_gradient("broadcast of a number", values(Dims<0>{}, 6), [&](auto x) { return sum(w * x + x); });
  check_gradient("matrix times matrix, left", values(shape, 5),
                 [&](auto x) { return sum(mm(x, square_matrix) * mm(w, square_matrix)); });
  check_gradient("matrix times matrix, right", values(dims(4, 3), 5), [&](auto x) { return sum(square(mm(w, x))); });
  check_gradient("matrix times vector", values(shape, 5), [&](auto x) { return sum(square(mv(x, v))); });
  check_gradient("matrix times vector, the vector", values(dims(4), 5), [&](auto x) { return sum(square(mv(w, x))); });
  check_gradient("inner product", values(dims(4), 5), [&](auto x) { return dot(x, v) * dot(x, x); });
  check_gradient("transposed and reshaped", values(shape, 5),
                 [&](auto x) { return sum(mm(transpose(x), reshape(reshape(x, 12), 3, 4))); });
  check_gradient("log softmax", values(shape, 5, -30, 30), [&](auto x) { return sum(log_softmax(x) * w); });
}

TEST_CASE("the chain rule by hand") {
  Variable x(Tensor<double, 1>{1.0, 2.0, 3.0});
  const auto y = x + 2;
  const auto out = mean(y * y * 3);
  out.backward();
  for (long i = 0; i < 3; ++i) CHECK(x.gradient()(i) == Approx(6 * (x.value()(i) + 2) / 3));
}

TEST_CASE("a value that is used many times gets the sum; backward again adds, zero_gradient forgets") {
  Variable x(Tensor<double, 0>(Dims<0>{}));
  x.leaf() = 3.0;
  const auto y = x * x + x * x * x;  // 2 x + 3 x^2
  y.backward();
  CHECK(x.gradient().item() == Approx(33));
  y.backward();
  CHECK(x.gradient().item() == Approx(66));
  x.zero_gradient();
  CHECK_FALSE(x.has_gradient());
  y.backward();
  CHECK(x.gradient().item() == Approx(33));
}

TEST_CASE("a seed stands for the gradient of what follows") {
  Variable x(values(dims(2, 3), 8));
  const auto y = x * x;
  const Tensor<double, 2> seed = values(dims(2, 3), 9);
  y.backward(seed);
  for (long i = 0; i < 6; ++i) CHECK(x.gradient().data()[i] == Approx(2 * x.value().data()[i] * seed.data()[i]));
  CHECK_THROWS_WITH(y.backward(values(dims(3, 2), 9)), Catch::Contains("(3, 2)") && Catch::Contains("(2, 3)"));
}

TEST_CASE("a seed at a leaf adds to its gradient; powers have one at 0") {
  Variable x(Tensor<double, 1>{0, 2});
  sum(x * 3).backward();
  x.backward(Tensor<double, 1>{1, 1});
  CHECK((x.gradient()(0) == 4 && x.gradient()(1) == 4));
  x.zero_gradient();
  sum(pow(x, 1) + pow(x, 0)).backward();
  CHECK((x.gradient()(0) == 1 && x.gradient()(1) == 1));
  CHECK_THROWS_WITH(dot(x, Variable(Tensor<double, 1>{1})), "dot: shapes (2) and (1) differ: both vectors must have one length");
}

TEST_CASE("gradients at the ends: where an exponential or a square overflows, and at the corner of a ReLU") {
  Variable x(Tensor<float, 1>{-200, -90, 0, 200});
  sum(sigmoid(x)).backward();
  CHECK((x.gradient()(0) == 0 && x.gradient()(1) < 1e-38f && x.gradient()(2) == 0.25f && x.gradient()(3) == 0));
  Variable corner(Tensor<float, 1>{-1, 0, 2});
  sum(relu(corner)).backward();  // as the layer Relu has it
  CHECK((corner.gradient()(0) == 0 && corner.gradient()(1) == 0 && corner.gradient()(2) == 1));
  CHECK(std::isnan(relu(Variable(Tensor<float, 1>{NAN})).value()(0)));
  Variable large(Tensor<float, 1>{1e20f}), small(Tensor<float, 1>{1e-25f});
  sum(large / large.detach() + large.detach() / large + 1e20f / large).backward();  // (1 - 1 - 1) / 1e20
  CHECK(large.gradient()(0) == Approx(-1e-20).epsilon(1e-6));
  sum(small.detach() / small + 1e-25f / small).backward();
  CHECK(small.gradient()(0) == Approx(-2e25).epsilon(1e-6));
}

TEST_CASE("what was computed before a leaf was changed is not differentiated at the new value") {
  Variable x(Tensor<double, 1>{1, 2});
  const auto before = sum(exp(x) * x);
  before.backward();
  const double first = x.gradient()(0);
  x.leaf() -= 0.5;
  CHECK_THROWS_WITH(before.backward(),
                    "Variable::backward: leaf() has changed a variable after this was computed from it: compute "
                    "it again");
  CHECK(x.gradient()(0) == first);
  x.zero_gradient();
  sum(exp(x) * x).backward();
  CHECK(x.gradient()(0) == Approx(1.5 * std::exp(0.5)));
}

TEST_CASE("a constant that was changed is seen as a changed leaf is") {
  Variable x(Tensor<double, 1>{1, 2});
  auto c = constant(Tensor<double, 1>{3, 4});
  const auto before = sum(x * c);
  c.leaf() = 10.0;
  CHECK_THROWS_WITH(before.backward(), Catch::Contains("leaf() has changed a variable after this was computed from it"));
  CHECK_FALSE(x.has_gradient());
  sum(c * x).backward();
  CHECK((x.gradient()(0) == 10 && x.gradient()(1) == 10 && !c.has_gradient()));
}

TEST_CASE("what has no gradient says why") {
  Variable x(values(dims(3), 1));
  CHECK_THROWS_WITH(x.gradient(), Catch::Contains("no backward() has reached"));
  CHECK_THROWS_WITH(constant(values(dims(3), 1)).gradient(), Catch::Contains("constant"));
  CHECK_THROWS_WITH(sum(constant(values(dims(3), 1))).backward(), Catch::Contains("nothing"));
  auto y = x * x;
  CHECK_THROWS_WITH(y.leaf() = 1.0, Catch::Contains("only leaves"));
  const auto d = y.detach();
  CHECK_FALSE(d.requires_gradient());
  const auto stopped = sum(d * x);
  stopped.backward();  // d counts as a constant
  for (long i = 0; i < 3; ++i) CHECK(x.gradient()(i) == Approx(d.value()(i)));
}

TEST_CASE("what a temporary variable gives is a tensor of its own") {
  using V = Variable<double, 1>;
  using Values = Tensor<double, 1>;
  static_assert(std::is_same_v<decltype(std::declval<V&>().value()), const Values&> &&
                std::is_same_v<decltype(std::declval<const V&>().gradient()), const Values&>);
  static_assert(std::is_same_v<decltype(std::declval<V>().value()), Values> &&
                std::is_same_v<decltype(std::declval<const V>().value()), Values> &&
                std::is_same_v<decltype(std::declval<V>().gradient()), Values> &&
                std::is_same_v<decltype(std::declval<const V>().gradient()), Values>);
  static_assert(HasLeaf<V&> && !HasLeaf<V>);
  V x(Values{1, 2});
  const auto e = (x * 2).value() + 1;  // would read what is gone
  const Values t = e;
  CHECK((t(0) == 3 && t(1) == 5));
  double sum = 0;
  for (const double v : (x * x).value()) sum += v;
  CHECK(sum == 5);
  autodiff::sum(x * x).backward();
  const V other = x;
  CHECK((V(x).value()(1) == 2 && V(x).gradient()(1) == 4));  // copies: x still has them
  CHECK((other.value()(1) == 2 && x.gradient()(1) == 4));
  V alone(Values{3});
  const double* memory = alone.value().data();
  CHECK(std::move(alone).value().data() == memory);  // moved: nobody else has them
  CHECK_THROWS_WITH(V(Values{1}).gradient(), Catch::Contains("no backward() has reached"));
}

TEST_CASE("a hundred thousand operations in a row are neither too deep to differentiate nor to forget") {
  Variable x(values(dims(2), 1));
  {
    auto y = x + 0;
    for (int i = 0; i < 100000; ++i) y = y * 1.0;
    sum(y).backward();
  }
  CHECK(x.gradient()(0) == Approx(1));
}

TEST_CASE("descent by hand finds the line") {
  const Tensor<double, 1> at = values(dims(50), 3, -1, 1);
  const auto inputs = constant(at.copy()), wanted = constant(Tensor<double, 1>(at * 2.0 + 0.5));
  Variable derivative(Tensor<double, 1>{0.0}), offset(Tensor<double, 1>{0.0});
  for (int step = 0; step < 300; ++step) {
    derivative.zero_gradient();
    offset.zero_gradient();
    mean(square(inputs * derivative + offset - wanted)).backward();
    derivative.leaf() -= 0.5 * derivative.gradient();
    offset.leaf() -= 0.5 * offset.gradient();
  }
  CHECK(derivative.value()(0) == Approx(2.0));
  CHECK(offset.value()(0) == Approx(0.5));
}

// [quote tape_layer]
/// y = x tanh(w) / |x|: the formula once; backward replays it on Variables.
struct Directions {
  static constexpr LayerInfo describe(Extents in) {
    return {.output = in,
            .parameters = {{{"weight", in, Init::fan_in_uniform, 1, 1}}},
            .saves_input = true,
            .fault = in.flat() ? nn::Fault::none : nn::Fault::wants_flat};  // else w's rows have a pitch
  }
  template <class S> static auto formula(const Variable<S, 2>& x, const Variable<S, 1>& w) {
    return x * tanh(w) / sqrt(sum(x * x, 1));
  }

  template <class In, class Frame> static void forward(Frame& f) {
    const auto y = formula(constant(rows<In>(f.x, f.batch)), constant(weight<In>(f)));
    assign(view<In>(f.y, f.batch), y.value());
  }
  template <class In, class Frame> static void backward(Frame& f) {
    Variable x(rows<In>(f.x, f.batch));
    Variable w(weight<In>(f));
    formula(x, w).backward(rows<In>(f.dy, f.batch));
    if (f.dx) assign(view<In>(f.dx, f.batch), x.gradient());
    for (long i = 0; i < In::count; ++i) f.gradients[i] += w.gradient()(i);
  }

 private:
  template <class In, class S> static TensorView<S, 2> view(S* data, long batch) {
    return {data, dims(batch, In::count), dims(sample_pitch(In::extents), 1), Cpu{}};
  }
  template <class In, class S> static Tensor<S, 2> rows(const S* data, long batch) { return Tensor<S, 2>(view<In>(data, batch)); }
  template <class In, class Frame> static auto weight(const Frame& f) {
    return Tensor<typename Frame::Scalar, 1>(view_of(f.parameters, In::count));
  }
};
// [end]

TEST_CASE("a layer may use variables inside") {
  STATIC_REQUIRE(Directions::describe({1, {5}}).fault == nn::Fault::none);
  STATIC_REQUIRE(Directions::describe({2, {3, 5}}).fault == nn::Fault::wants_flat);
  support::LayerHarness<Directions, Shape<5>, double> h(3);
  h.forward();
  h.backward();
  h.check_gradients();
}
