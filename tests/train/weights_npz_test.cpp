// SPDX-License-Identifier: Apache-2.0
// Weights as arrays of NumPy: without padding, by name; in PyTorch's layout they are what a network written as PyTorch has it
// gives the same outputs with.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/concat.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/conv_transpose2d.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/group_norm.hpp>
#include <skein/nn/identity.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/residual.hpp>
#include <skein/nn/slice.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/tensor/create.hpp>
#include <skein/train/predictor.hpp>
#include <skein/train/feature_order.hpp>
#include <skein/train/weights_npz.hpp>

#include "../support/own_layers.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {

// Behind the Flatten a normalisation, whose vectors are of channels first too.
using Net = nn::Sequential<nn::Conv2d<6, sk::Kernel<3>>, nn::Relu, nn::Flatten, nn::BatchNorm<>, nn::Dropout<>, nn::Linear<7>,
                           nn::Relu, nn::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<5, 6, 2>>;

void scatter(Model& model) {  // so that no array is all ones or zeros
  auto weights = model.modify();
  for (const sk::plan::Entry& e : Model::program.buffers())
    for (long i = 0; i < e.extents.count(); ++i)
      model.buffers()[static_cast<std::size_t>(e.offset + i)] =
          0.5f + sk::random_uniform(9, 1, static_cast<std::uint64_t>(e.offset + i));
  for (const sk::plan::Entry& e : Model::program.parameters())
    if (e.extents.rank == 1)
      for (long i = 0; i < e.extents.count(); ++i)
        weights[static_cast<std::size_t>(e.offset + i)] += sk::random_uniform(9, 0, static_cast<std::uint64_t>(e.offset + i));
}

/// The network over one image of (channels, height, width), with arrays as a state_dict has them.
std::vector<double> as_pytorch_has_it(const sk::NpzFile& f, const sk::Tensor<float, 3>& image) {
  const auto kernel = f.get<float, 4>("0.weight");
  const auto bias = f.get<float, 1>("0.bias"), gain = f.get<float, 1>("3.weight"), shift = f.get<float, 1>("3.bias"),
             mean = f.get<float, 1>("3.running_mean"), variance = f.get<float, 1>("3.running_var");
  std::vector<double> x;  // flattened (channels, height, width)
  for (long o = 0; o < 6; ++o)
    for (long i = 0; i < 3; ++i)
      for (long j = 0; j < 4; ++j) {
        double sum = bias(o);
        for (long c = 0; c < 2; ++c)
          for (long a = 0; a < 3; ++a)
            for (long b = 0; b < 3; ++b) sum += static_cast<double>(kernel(o, c, a, b)) * image(c, i + a, j + b);
        x.push_back(std::max(0.0, sum));
      }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long k = static_cast<long>(i);
    x[i] = (x[i] - mean(k)) / std::sqrt(variance(k) + 1e-5) * gain(k) + shift(k);
  }
  for (const char* name : {"5", "7"}) {
    const auto weight = f.get<float, 2>(std::string(name) + ".weight");
    const auto b = f.get<float, 1>(std::string(name) + ".bias");
    std::vector<double> y;
    for (long o = 0; o < weight.extent(0); ++o) {
      double sum = b(o);
      for (long i = 0; i < weight.extent(1); ++i) sum += static_cast<double>(weight(o, i)) * x[static_cast<std::size_t>(i)];
      y.push_back(name[0] == '5' ? std::max(0.0, sum) : sum);
    }
    x = y;
  }
  return x;
}

}  // namespace

TEST_CASE("Weights go to NumPy's files and back, without the padding of rows", "[train]") {
  const support::TemporaryFolder folder;
  Model model{sk::Seed{1}}, other{sk::Seed{2}};
  scatter(model);
  for (const auto layout : {sk::WeightLayout::skein, sk::WeightLayout::pytorch}) {
    sk::save_npz(folder / "w.npz", model, {.layout = layout});
    other = Model{sk::Seed{2}};
    sk::load_npz(folder / "w.npz", other, {.layout = layout});
    CHECK(std::equal(model.parameters().begin(), model.parameters().end(), other.parameters().begin()));
    CHECK(std::equal(model.buffers().begin(), model.buffers().end(), other.buffers().begin()));
  }
  sk::save_npz(folder / "w.npz", model);
  const sk::NpzFile file = sk::load_npz(folder / "w.npz");
  CHECK(file.names() == std::vector<std::string>{"0.weight", "0.bias", "3.weight", "3.bias", "5.weight", "5.bias", "7.weight",
                                                 "7.bias", "3.running_mean", "3.running_var"});
  const auto last = file.get<float, 2>("7.weight");  // (7, 3)
  CHECK(last(6, 2) ==
        model.parameters()[static_cast<std::size_t>(Model::parameter("7.weight").offset + 6 * sk::row_pitch(3) + 2)]);
}

TEST_CASE("Compressed weights unpack to no more than the limit that load_npz is given", "[train]") {
  const support::TemporaryFolder folder;
  sk::Model<nn::Linear<2>, sk::Shape<3>> model{sk::Seed{1}};
  {
    sk::NpzWriter out(folder / "w.npz", sk::NpzMethod::deflated);
    out.add("weight", sk::ones<float>(3, 2));
    out.add("bias", sk::ones<float>(2));
  }
  CHECK_THROWS_WITH(sk::load_npz(folder / "w.npz", model, {.limit = 8}), Catch::Contains("for a model: .limit"));
  CHECK_NOTHROW(sk::load_npz(folder / "w.npz", model, {.limit = 64}));
}

TEST_CASE("In PyTorch's layout a network of channels first gives the same outputs", "[train]") {
  const support::TemporaryFolder folder;
  Model model{sk::Seed{1}};
  scatter(model);
  const std::string path = folder / "weights.npz";
  // [quote pytorch]
  sk::save_npz(path, model, {.layout = sk::WeightLayout::pytorch});
  sk::load_npz(path, model, {.layout = sk::WeightLayout::pytorch});
  // [end]
  const auto file = sk::load_npz(path);
  CHECK(file.get<float, 4>("0.weight").shape() == sk::dims(6, 2, 3, 3));
  CHECK(file.get<float, 2>("5.weight").shape() == sk::dims(7, 72));
  const sk::Tensor<float, 4> images = sk::normal<float>(sk::Seed{5}, sk::dims(1, 5, 6, 2));
  sk::Tensor<float, 3> channels_first(sk::dims(2, 5, 6));
  for (long c = 0; c < 2; ++c)
    for (long i = 0; i < 5; ++i)
      for (long j = 0; j < 6; ++j) channels_first(c, i, j) = images(0, i, j, c);
  sk::Predictor predictor{model, {.threads = 1}};
  const auto outputs = predictor.predict(images);
  const auto expected = as_pytorch_has_it(file, channels_first);
  for (long o = 0; o < 3; ++o) CHECK(outputs(0, o) == Approx(expected[static_cast<std::size_t>(o)]).epsilon(1e-4).margin(1e-5));
}

TEST_CASE("In PyTorch's layout no array is written whose features have an order that is not known", "[train]") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "w.npz";
  const auto said = [&]<class... Behind>(nn::Sequential<Behind...>*) -> std::string {
    using Net = nn::Sequential<nn::Conv2d<4, sk::Kernel<2>>, nn::Flatten, Behind...>;  // of an image (2, 3, 4)
    sk::Model<Net, sk::Shape<3, 4, 2>> model{sk::Seed{1}};
    sk::save_npz(path, model);
    try {
      sk::save_npz(path, model, {.layout = sk::WeightLayout::pytorch});
      sk::load_npz(path, model, {.layout = sk::WeightLayout::pytorch});
    } catch (const sk::FileError& e) { return e.what(); }
    return "";
  };
  const auto behind = [&]<class... L>(nn::Sequential<L...>* layers, const char* layer) {
    CHECK_THAT(said(layers), Catch::Contains("through the layer " + std::string(layer)));
  };
  using nn::Linear, nn::Sequential, nn::Tanh, nn::Concat, nn::Residual, own_layers::Scale;
  behind(static_cast<Sequential<Residual<Linear<24>>, Linear<3>>*>(nullptr), "Residual");
  behind(static_cast<Sequential<Concat<nn::Identity, Linear<3>>, Linear<2>>*>(nullptr), "Concat");
  behind(static_cast<Sequential<Concat<Linear<3>, Tanh>, nn::Relu, Linear<2>>*>(nullptr), "Concat");
  behind(static_cast<Sequential<Scale, Linear<3>>*>(nullptr), "Scale");
  behind(static_cast<Sequential<nn::Slice<0, 8>, Linear<3>>*>(nullptr), "Slice");
  behind(static_cast<Sequential<nn::GroupNorm<2>, Linear<3>>*>(nullptr), "GroupNorm");
  CHECK(said(static_cast<Sequential<Linear<8>, Residual<Linear<8>>, Scale, Linear<3>>*>(nullptr)).empty());
  CHECK(said(static_cast<Sequential<Concat<Linear<3>, Sequential<Tanh, Linear<4>>>, Linear<2>>*>(nullptr)).empty());

  using Net = Sequential<nn::Conv2d<4, sk::Kernel<2>>, nn::Flatten, nn::GroupNorm<1>, Residual<Tanh>, Linear<3>>;
  sk::Model<Net, sk::Shape<3, 4, 2>> model{sk::Seed{1}};
  sk::save_npz(path, model);
  const auto ours = sk::load_npz(path).get<float, 2>("4.weight");  // (24, 3)
  sk::save_npz(path, model, {.layout = sk::WeightLayout::pytorch});
  const auto theirs = sk::load_npz(path).get<float, 2>("4.weight");  // (3, 24)
  for (long p = 0; p < 6; ++p)
    for (long c = 0; c < 4; ++c) CHECK(theirs(1, c * 6 + p) == ours(p * 4 + c, 1));

  sk::Model<Sequential<nn::Conv2d<4, sk::Kernel<2>>, nn::Flatten, Scale>, sk::Shape<3, 4, 2>> own{sk::Seed{1}};
  {
    auto w = own.modify();
    for (long i = 0; i < 24; ++i) w[static_cast<std::size_t>(own.parameter("2.scale").offset + i)] = static_cast<float>(i);
  }
  sk::save_npz(path, own, {.layout = sk::WeightLayout::pytorch});
  const auto scale = sk::load_npz(path).get<float, 1>("2.scale");  // (24): as it is
  for (long i = 0; i < 24; ++i) CHECK(scale(i) == static_cast<float>(i));
}

TEST_CASE("In PyTorch's layout joins are judged by the rows that they read, where their branches begin with an image",
          "[train]") {
  const support::TemporaryFolder folder;
  const std::string own = folder / "own.npz", path = folder / "torch.npz";
  const sk::WeightOptions torch{.layout = sk::WeightLayout::pytorch};
  const auto refused = [&]<class... L>(nn::Sequential<L...>*, const char* layer) {
    sk::Model<nn::Sequential<L...>, sk::Shape<2, 3, 4>> model{sk::Seed{1}};
    CHECK_THROWS_WITH(sk::save_npz(path, model, torch), Catch::Contains("through the layer " + std::string(layer)));
  };
  using nn::Flatten, nn::Linear, nn::Sequential, nn::Residual, nn::Reshape, nn::Concat;
  using Conv = nn::Conv2d<4, sk::Kernel<1>>;
  using Rows = Sequential<Conv, Flatten>;
  refused(static_cast<Sequential<Concat<Rows, Sequential<nn::Conv2d<2, sk::Kernel<2>>, Flatten>>, Linear<5>>*>(nullptr),
          "Concat");
  refused(static_cast<Sequential<Concat<Rows, Sequential<Flatten, Linear<4>>>, nn::BatchNorm<>>*>(nullptr), "Concat");
  refused(static_cast<Sequential<Conv, Concat<Flatten, Flatten>, Linear<5>>*>(nullptr), "Concat");
  refused(static_cast<Sequential<Residual<Sequential<Flatten, Linear<24>>, Flatten>, Linear<5>>*>(nullptr), "Residual");
  // a row becomes a sequence, or another image
  refused(static_cast<Sequential<Flatten, Reshape<4, 6>, nn::Lstm<4, sk::LastState>>*>(nullptr), "Reshape");
  refused(static_cast<Sequential<Flatten, Reshape<4, 6>, nn::EachPosition<Linear<2>>>*>(nullptr), "Reshape");
  refused(static_cast<Sequential<Flatten, Reshape<3, 2, 4>, Conv>*>(nullptr), "Reshape");
  refused(static_cast<Sequential<Flatten, Reshape<3, 2, 4>, nn::Relu, Flatten, Linear<5>>*>(nullptr), "Reshape");
  sk::save_npz(path, sk::Model<Sequential<Flatten, Reshape<2, 3, 4>, Conv>, sk::Shape<2, 3, 4>>{sk::Seed{1}}, torch);  // and back

  const sk::Model<Sequential<Residual<Rows, Rows>, Linear<5>>, sk::Shape<2, 3, 4>> sum{sk::Seed{1}};  // of one order
  sk::save_npz(own, sum);
  sk::save_npz(path, sum, torch);
  const auto ours = sk::load_npz(own).get<float, 2>("1.weight"), theirs = sk::load_npz(path).get<float, 2>("1.weight");
  for (long p = 0; p < 6; ++p)
    for (long c = 0; c < 4; ++c) CHECK(theirs(1, c * 6 + p) == ours(p * 4 + c, 1));
}

TEST_CASE("In PyTorch's layout features that a Reshape makes an image of, or a row of one, are channels first", "[train]") {
  const support::TemporaryFolder folder;
  const std::string own = folder / "own.npz", path = folder / "torch.npz";
  const sk::WeightOptions torch{.layout = sk::WeightLayout::pytorch};
  const auto write = [&]<class Model>(Model&& model) {
    sk::save_npz(own, model);
    sk::save_npz(path, model, torch);
    std::remove_cvref_t<Model> other{sk::Seed{2}};
    sk::load_npz(path, other, torch);
    CHECK(std::equal(model.parameters().begin(), model.parameters().end(), other.parameters().begin()));
  };
  using Decoder = nn::Sequential<nn::Linear<12>, nn::Relu, nn::Reshape<2, 3, 2>, nn::ConvTranspose2d<3, sk::Kernel<2>>>;
  write(sk::Model<Decoder, sk::Shape<5>>{sk::Seed{1}});  // in PyTorch Linear, ReLU, Unflatten(1, (2, 2, 3)), ...
  const sk::NpzFile ours(own), theirs(path);
  const auto w = ours.get<float, 2>("0.weight"), its = theirs.get<float, 2>("0.weight");  // (5, 12) and (12, 5)
  const auto bias = ours.get<float, 1>("0.bias"), its_bias = theirs.get<float, 1>("0.bias");
  for (long p = 0; p < 6; ++p)
    for (long c = 0; c < 2; ++c) {
      CHECK(its_bias(c * 6 + p) == bias(p * 2 + c));
      for (long i = 0; i < 5; ++i) CHECK(its(c * 6 + p, i) == w(i, p * 2 + c));
    }
  write(sk::Model<nn::Sequential<nn::Conv2d<4, sk::Kernel<2>>, nn::Reshape<24>, nn::Linear<3>>, sk::Shape<3, 4, 2>>{sk::Seed{1}});
  const auto behind = sk::load_npz(own).get<float, 2>("2.weight"), first = sk::load_npz(path).get<float, 2>("2.weight");
  for (long p = 0; p < 6; ++p)  // of an image (2, 3, 4)
    for (long c = 0; c < 4; ++c) CHECK(first(1, c * 6 + p) == behind(p * 4 + c, 1));

  const auto refused = [&]<class... L>(nn::Sequential<L...>*, const char* layer) {
    sk::Model<nn::Sequential<L...>, sk::Shape<3, 4>> model{sk::Seed{1}};
    CHECK_THROWS_WITH(sk::save_npz(path, model, torch), Catch::Contains("through the layer " + std::string(layer)));
  };
  using nn::Flatten, nn::Linear, nn::Sequential, nn::Residual, nn::Reshape;
  refused(static_cast<Sequential<Flatten, Linear<12>, Residual<Linear<12>>, Reshape<2, 3, 2>>*>(nullptr), "Residual");
  refused(static_cast<Sequential<Flatten, Linear<12>, nn::GroupNorm<2>, Reshape<2, 3, 2>>*>(nullptr), "GroupNorm");
  refused(static_cast<Sequential<nn::Lstm<12, sk::LastState>, Reshape<2, 3, 2>>*>(nullptr), "Reshape");
  refused(static_cast<Sequential<Reshape<2, 3, 2>, Flatten, Linear<12>, Reshape<2, 3, 2>>*>(nullptr), "Reshape");
  refused(static_cast<Sequential<Flatten, Linear<24>, nn::Slice<0, 12>, Reshape<2, 3, 2>>*>(nullptr), "Slice");
}

namespace weights_npz_test {
struct x;
struct image;
struct flat;
struct a;
struct b;
struct sum;
struct y;
using nn::Apply, nn::From, nn::To, nn::Input, nn::Output;
using Row = nn::Sequential<nn::Flatten, nn::Linear<24>>;
struct SumOfThree
    : nn::Graph<Input<x>, Apply<Row, From<x>, To<a>>, Apply<Row, From<x>, To<b>>, Apply<nn::Flatten, From<x>, To<flat>>,
                Apply<nn::Add, From<a, b, flat>, To<sum>>, Apply<nn::Linear<3>, From<sum>, To<y>>, Output<y>> {};
using Convolution = nn::Conv2d<2, sk::Kernel<2>>;
struct OfRow : nn::Graph<Input<image, sk::Shape<2, 3, 4>>, Apply<Convolution, From<image>, To<y>>, Output<y>> {};
struct OfHalves : nn::Graph<Input<a, sk::Shape<2, 3, 4>>, Input<b, sk::Shape<2, 3, 4>>, Apply<nn::Add, From<a, b>, To<image>>,
                            Apply<Convolution, From<image>, To<y>>, Output<y>> {};
struct Own : nn::Linear<3> {};
}  // namespace weights_npz_test

TEST_CASE(
    "In PyTorch's layout a Graph's joins of three edges and its Inputs are seen, and an own layer on each position is its own",
    "[train]") {
  using namespace weights_npz_test;
  const support::TemporaryFolder folder;
  const std::string own = folder / "own.npz", path = folder / "torch.npz";
  const sk::WeightOptions torch{.layout = sk::WeightLayout::pytorch};
  const sk::Model<SumOfThree, sk::Shape<2, 3, 4>> summed{sk::Seed{1}};
  CHECK_THROWS_WITH(sk::save_npz(path, summed, torch), Catch::Contains("through the layer Add"));

  const sk::Model<nn::Sequential<nn::Linear<24>, OfRow>, sk::Shape<5>> decoder{sk::Seed{1}};
  sk::save_npz(own, decoder);
  sk::save_npz(path, decoder, torch);
  const auto ours = sk::load_npz(own).get<float, 2>("0.weight"), its = sk::load_npz(path).get<float, 2>("0.weight");
  for (long p = 0; p < 6; ++p)
    for (long c = 0; c < 4; ++c) CHECK(its(c * 6 + p, 2) == ours(2, p * 4 + c));
  const sk::Model<nn::Sequential<nn::Linear<48>, OfHalves>, sk::Shape<5>> halves{sk::Seed{1}};
  CHECK_THROWS_WITH(sk::save_npz(path, halves, torch), Catch::Contains("through the layer input"));

  const sk::Model<nn::EachPosition<Own>, sk::Shape<2, 5>> each{sk::Seed{1}};
  sk::save_npz(path, each, torch);
  CHECK(sk::load_npz(path).get<float, 2>("weight").shape() == sk::dims(5, 3));  // as Own alone has it
  const sk::Model<nn::EachPosition<nn::Linear<3>>, sk::Shape<2, 5>> of_linear{sk::Seed{1}};
  sk::save_npz(path, of_linear, torch);
  CHECK(sk::load_npz(path).get<float, 2>("weight").shape() == sk::dims(3, 5));
}

TEST_CASE("A file of other weights is refused, and changes nothing", "[train]") {
  const support::TemporaryFolder folder;
  using Other = sk::Model<nn::Sequential<nn::Linear<7>, nn::Linear<3>>, sk::Shape<4>>;
  Other model{sk::Seed{1}}, same{sk::Seed{1}};
  const auto unchanged = [&] {
    return std::equal(model.parameters().begin(), model.parameters().end(), same.parameters().begin());
  };
  sk::save_npz(folder / "torch.npz", model, {.layout = sk::WeightLayout::pytorch});
  CHECK_THROWS_WITH(
      sk::load_npz(folder / "torch.npz", model),
      Catch::Contains(
          "was saved in PyTorch's layout, in which the weights of square layers are transposed: load it with {.layout "
          "= WeightLayout::pytorch}"));
  CHECK(unchanged());
  {
    sk::NpzWriter out(folder / "foreign.npz");  // says nothing of its layout, as NumPy does not
    out.add("0.weight", sk::zeros<float>(7, 4));
    out.close();
  }
  CHECK_THROWS_WITH(
      sk::load_npz(folder / "foreign.npz", model),
      Catch::Contains("the array '0.weight' has the shape (7, 4), the model's is (4, 7)") && Catch::Contains("pytorch"));
  CHECK(unchanged());
  {
    sk::NpzWriter out(folder / "flat.npz");  // of another number of dimensions
    out.add("0.weight", sk::zeros<float>(28));
    out.close();
  }
  CHECK_THROWS_WITH(sk::load_npz(folder / "flat.npz", model),
                    Catch::Contains("the array '0.weight' has the shape (28), the model's is (4, 7): it is another network's"));
  CHECK(unchanged());
  {
    sk::NpzWriter out(folder / "part.npz");
    out.add("1.bias", sk::Tensor<double, 1>{1, 2, 3});
    out.add("head.bias", sk::Tensor<float, 1>{1, 2, 3});
    out.close();
  }
  CHECK_THROWS_WITH(
      sk::load_npz(folder / "part.npz", model),
      Catch::Contains("has no array '0.weight', '0.bias', '1.weight', but the array 'head.bias', which is none of the "
                      "model's: load it with {.partial = true}"));
  CHECK(unchanged());
  sk::load_npz(folder / "part.npz", model, {.partial = true});
  CHECK(model.parameters()[static_cast<std::size_t>(Other::parameter("1.bias").offset + 1)] == 2);
  {
    sk::NpzWriter out(folder / "renamed.npz");
    out.add("fc1.bias", sk::Tensor<float, 1>{1, 2, 3});
    out.close();
  }
  CHECK_THROWS_AS(sk::load_npz(folder / "renamed.npz", model, {.partial = true}), sk::FileError);
  CHECK_THROWS_WITH(sk::load_npz(folder / "renamed.npz", model),
                    Catch::Contains("has none of the model's arrays: the file has 'fc1.bias', the model '0.weight', '0.bias', "
                                    "'1.weight', ...: save the file under the names of sk::summary(model)"));
  CHECK_THROWS_WITH(sk::load_npz(folder / "renamed.npz", model, {.partial = true}),
                    Catch::Contains("has none of the model's arrays") &&
                        Catch::Contains("the file has 'fc1.bias', the model '0.weight', '0.bias', '1.weight', ..."));
  sk::save_npz(folder / "all.npz", model);
  Other loaded{sk::Seed{3}};
  sk::load_npz(folder / "all.npz", loaded);
  CHECK(loaded.parameters()[0] == same.parameters()[0]);

  using Wider = sk::Model<nn::Sequential<nn::Linear<7>, nn::Linear<5>>, sk::Shape<4>>;  // another head
  Wider wider{sk::Seed{4}}, untouched{sk::Seed{4}};
  CHECK_THROWS_WITH(sk::load_npz(folder / "all.npz", wider), Catch::Contains("{.except = \"1.*\"} leaves it out"));
  sk::load_npz(folder / "all.npz", wider, {.except = "1.*"});
  const auto head = static_cast<std::size_t>(Wider::parameter("1.weight").offset);
  CHECK(wider.parameters()[0] == same.parameters()[0]);
  CHECK(wider.parameters()[head] == untouched.parameters()[head]);
  CHECK_THROWS_WITH(sk::load_npz(folder / "all.npz", loaded, {.except = "head.*"}),
                    Catch::Contains("is the name of none of the model's arrays"));
  CHECK_THROWS_WITH(sk::load_npz(folder / "all.npz", wider, {.except = "*"}), Catch::Contains("is the name of all"));
  const sk::WeightOptions no_layout{.layout = static_cast<sk::WeightLayout>(7)};
  const auto said = Catch::EndsWith(".layout is 7, and no value of its enumeration has that number: give skein or pytorch");
  CHECK_THROWS_WITH(sk::load_npz(folder / "all.npz", model, no_layout), Catch::StartsWith("load_npz: ") && said);
  CHECK_THROWS_WITH(sk::save_npz(folder / "none.npz", model, no_layout), Catch::StartsWith("save_npz: ") && said);
  CHECK_FALSE(std::filesystem::exists(folder / "none.npz"));
}

TEST_CASE("An array of another shape is left out by an advice that load_npz takes, or there is none", "[train]") {
  const support::TemporaryFolder folder;
  sk::Model<nn::Linear<3>, sk::Shape<4>> narrow{sk::Seed{1}};  // "weight" and "bias"
  sk::save_npz(folder / "w.npz", narrow);
  sk::Model<nn::Linear<3>, sk::Shape<5>> wide{sk::Seed{2}};
  CHECK_THROWS_WITH(sk::load_npz(folder / "w.npz", wide), Catch::EndsWith("{.except = \"weight\"} leaves it out"));
  CHECK_NOTHROW(sk::load_npz(folder / "w.npz", wide, {.except = "weight"}));
  sk::Model<nn::Sequential<nn::Linear<3>>, sk::Shape<4>> one{sk::Seed{1}};  // "0.weight" and "0.bias": no other layer
  sk::save_npz(folder / "one.npz", one);
  sk::Model<nn::Sequential<nn::Linear<3>>, sk::Shape<5>> other{sk::Seed{2}};
  CHECK_THROWS_WITH(sk::load_npz(folder / "one.npz", other), Catch::EndsWith("or in the other layout (WeightLayout::pytorch)"));
}

TEST_CASE("Parameters are visited by name as views without padding", "[train]") {
  Model model{sk::Seed{1}};
  long count = 0;
  std::vector<std::string> names;
  model.for_each_parameter([&](std::string_view name, auto view) {
    names.emplace_back(name);
    count += view.size();
    if constexpr (decltype(view)::rank == 2)
      if (name == "7.weight")
        CHECK(view(6, 2) ==
              model.parameters()[static_cast<std::size_t>(Model::parameter("7.weight").offset + 6 * sk::row_pitch(3) + 2)]);
  });
  CHECK(count == Model::parameter_count);
  CHECK(names.size() == 8);
  CHECK(names[5] == "5.bias");
}

namespace {
/// Saves a network of one layer in PyTorch's layout, and gives what the file has of its weight; it must come back.
template <int Rank, class Layer, class Input> sk::Tensor<float, Rank> weight_for_pytorch(sk::Model<Layer, Input>& model) {
  const support::TemporaryFolder folder;
  sk::save_npz(folder / "w.npz", model, {.layout = sk::WeightLayout::pytorch});
  sk::Model<Layer, Input> other{sk::Seed{2}};
  sk::load_npz(folder / "w.npz", other, {.layout = sk::WeightLayout::pytorch});
  CHECK(std::equal(model.parameters().begin(), model.parameters().end(), other.parameters().begin()));
  return sk::load_npz(folder / "w.npz").get<float, Rank>("weight");
}
}  // namespace

TEST_CASE("Convolutions along sequences, through volumes and transposed have PyTorch's shapes in the file", "[train]") {
  sk::Model<nn::Conv1d<5, sk::Kernel<4>>, sk::Shape<9, 3>> line{sk::Seed{1}};
  const auto w1 = weight_for_pytorch<3>(line);
  REQUIRE(w1.shape() == sk::dims(5, 3, 4));
  CHECK(w1(4, 2, 1) == line.parameters()[(1 * 3 + 2) * sk::row_pitch(5) + 4]);
  sk::Model<nn::Conv3d<5, sk::Kernel<2>>, sk::Shape<4, 4, 4, 3>> volume{sk::Seed{1}};
  const auto w3 = weight_for_pytorch<5>(volume);
  REQUIRE(w3.shape() == sk::dims(5, 3, 2, 2, 2));
  CHECK(w3(4, 2, 1, 0, 1) == volume.parameters()[((1 * 4 + 0 * 2 + 1) * 3 + 2) * sk::row_pitch(5) + 4]);
  sk::Model<nn::ConvTranspose2d<5, sk::Kernel<2>>, sk::Shape<4, 4, 3>> back{sk::Seed{1}};
  const auto wt = weight_for_pytorch<4>(back);
  REQUIRE(wt.shape() == sk::dims(3, 5, 2, 2));
  CHECK(wt(2, 4, 1, 0) == back.parameters()[((1 * 2 + 0) * 5 + 4) * sk::row_pitch(3) + 2]);
}

TEST_CASE("Square layers are not read in the other layout", "[train]") {
  const support::TemporaryFolder folder;
  using Square = sk::Model<nn::Sequential<nn::Linear<4>, nn::Linear<4>>, sk::Shape<4>>;
  Square model{sk::Seed{1}}, same{sk::Seed{1}}, other{sk::Seed{2}};
  const auto equal = [](const Square& a, const Square& b) {
    return std::equal(a.parameters().begin(), a.parameters().end(), b.parameters().begin());
  };
  const sk::WeightOptions torch{.layout = sk::WeightLayout::pytorch};
  sk::save_npz(folder / "torch.npz", model, torch);
  sk::save_npz(folder / "own.npz", model);
  CHECK_THROWS_WITH(sk::load_npz(folder / "torch.npz", other), Catch::Contains("was saved in PyTorch's layout"));
  CHECK_THROWS_WITH(sk::load_npz(folder / "own.npz", other, torch),
                    Catch::Contains("was saved in skein's layout") && Catch::Contains("load it without .layout"));
  CHECK(equal(other, Square{sk::Seed{2}}));
  sk::load_npz(folder / "torch.npz", other, torch);
  CHECK(equal(other, same));
  Square third{sk::Seed{3}};
  sk::load_npz(folder / "own.npz", third);
  CHECK(equal(third, same));
  CHECK(sk::load_npz(folder / "torch.npz").comment() == "skein: weights in PyTorch's layout");
}

TEST_CASE("recurrent weights are (gates H, in) in PyTorch's layout, square ones too", "[train]") {
  const support::TemporaryFolder folder;
  sk::Model<nn::Sequential<nn::Lstm<3>, nn::Rnn<3>>, sk::Shape<4, 5>> model{sk::Seed{1}}, other{sk::Seed{2}};
  const auto values = [](const auto& m) { return std::vector<float>(m.parameters().begin(), m.parameters().end()); };
  sk::save_npz(folder / "w.npz", model, {.layout = sk::WeightLayout::pytorch});
  const sk::NpzFile file = sk::load_npz(folder / "w.npz");
  for (const std::string name : {"0.weight_ih", "1.weight_ih", "1.weight_hh"}) {
    const sk::Tensor<float, 2> w = file.get<float, 2>(name + "_l0");  // as torch's modules of one layer
    const float* own = nullptr;
    for (const sk::plan::Entry& e : decltype(model)::program.parameters())
      if (decltype(model)::program.name(e) == std::string_view(name)) own = std::as_const(model).parameters().data + e.offset;
    REQUIRE(own != nullptr);
    const long in = name == "0.weight_ih" ? 5 : 3, out = name == "0.weight_ih" ? 12 : 3;
    REQUIRE((w.extent(0) == out && w.extent(1) == in));
    for (long o = 0; o < out; ++o)
      for (long i = 0; i < in; ++i) REQUIRE(w(o, i) == own[i * sk::row_pitch(out) + o]);
  }
  sk::load_npz(folder / "w.npz", other, {.layout = sk::WeightLayout::pytorch});
  CHECK(values(std::as_const(other)) == values(std::as_const(model)));
}

TEST_CASE("recurrent weights are read by the names of torch's modules, and by their own", "[train]") {
  const support::TemporaryFolder folder;
  using Net = sk::Model<nn::Sequential<nn::Gru<3, sk::LastState>, nn::Linear<2>>, sk::Shape<4, 5>>;
  Net model{sk::Seed{1}};
  const sk::WeightOptions torch{.layout = sk::WeightLayout::pytorch};
  sk::save_npz(folder / "w.npz", model, torch);
  const sk::NpzFile file = sk::load_npz(folder / "w.npz");
  std::vector<std::string> names = file.names();
  std::sort(names.begin(), names.end());
  CHECK(names ==
        std::vector<std::string>{"0.bias_hh_l0", "0.bias_ih_l0", "0.weight_hh_l0", "0.weight_ih_l0", "1.bias", "1.weight"});
  const auto rewritten = [&](const char* to, bool with_suffix, const char* more) {
    sk::NpzWriter out(folder / to);
    for (const std::string& n : names) {
      const std::string name = with_suffix ? n : n.substr(0, n.find("_l0"));
      if (file.shape(n).size() == 1) out.add(name, file.get<float, 1>(n));
      else out.add(name, file.get<float, 2>(n));
    }
    if (*more) out.add(more, file.get<float, 1>("1.bias"));
    out.close();
    return folder / to;
  };
  for (const bool with_suffix : {true, false}) {
    Net other{sk::Seed{2}};
    sk::load_npz(rewritten("r.npz", with_suffix, ""), other, torch);
    CHECK(std::equal(other.parameters().begin(), other.parameters().end(), std::as_const(model).parameters().begin()));
  }
  Net other{sk::Seed{2}};
  CHECK_THROWS_WITH(sk::load_npz(rewritten("r.npz", true, "1.bias_l0"), other, torch), Catch::Contains("'1.bias_l0'"));
  CHECK_THROWS_WITH(sk::load_npz(rewritten("r.npz", true, "0.bias_hh_l1"), other, torch), Catch::Contains("'0.bias_hh_l1'"));
}
