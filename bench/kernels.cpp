// SPDX-License-Identifier: Apache-2.0
// How fast are the kernels behind Conv2d and Linear beside oneDNN's own call of the same work on one thread: the convolutions of
// ResNet-20 and ResNet-32 (batch 128) and of ResNet-50 (batch 16), forward, and both gradients; products of Linear layers? The
// peer is the bare primitive with weights in the layout that it likes, made before; images lie as ours (NHWC), or as it likes:
// the faster of the two. Both sides have four sets of arrays, which take turns. The floor is the flops over the rate of a large
// product of matrices. --quick leaves out most of ResNet-50; --quick --only resnet_50 has all of it.
#include <algorithm>
#include <memory>
#include <vector>

#include <skein/core/random.hpp>
#include <skein/ops/conv2d.hpp>
#include <skein/ops/dense.hpp>

#include "support/apart.hpp"
#include "support/report.hpp"

#if SKEIN_WITH_ONEDNN
namespace {
using namespace bench;
namespace sk = skein;
namespace ops = skein::ops;
namespace onednn = skein::ops::cpu::onednn;
using Array = sk::Arena<float>;

void scatter(Array& a, std::uint64_t stream) {
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = sk::random_uniform(3, stream, i) - 0.5f;
}
std::size_t size(long n) { return static_cast<std::size_t>(n); }

/// oneDNN's primitives of one convolution.
class Bare {
 public:
  /// images: 0: NHWC, as ours; 1: as oneDNN likes.
  Bare(const ops::Conv2dGeometry& g, long n, bool own_images) : g_(g), n_(n), own_(own_images) {
    const onednn::Plan f = plan(Which::forward, nullptr), d = plan(Which::data, f.get()), w = plan(Which::weights, f.get());
    forward_ =
        make(f, {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md}, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
    data_ = make(d, {dnnl_query_diff_dst_md, dnnl_query_weights_md, dnnl_query_diff_src_md},
                 {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC});
    weights_ = make(w, {dnnl_query_src_md, dnnl_query_diff_dst_md, dnnl_query_diff_weights_md},
                    {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS});
  }
  void forward() { forward_.run(); }
  void backward() {
    data_.run();
    weights_.run();
  }

 private:
  enum class Which { forward, data, weights };
  struct Call {
    std::unique_ptr<onednn::Primitive> primitive;
    Array arrays[3];
    void run() { primitive->run({arrays[0].data(), arrays[1].data(), arrays[2].data()}); }
  };

  onednn::Description image(long h, long w, long c) const {
    if (own_) return {{n_, c, h, w}, {}};
    return {{n_, c, h, w}, {h * w * c, 1, w * c, c}};
  }
  onednn::Plan plan(Which which, [[maybe_unused]] const_dnnl_primitive_desc_t hint) const {
    const onednn::Description x = image(g_.height, g_.width, g_.channels), y = image(g_.out_height(), g_.out_width(), g_.filters),
                              w({g_.filters, g_.channels, g_.kernel, g_.kernel}, {});
    const dnnl_dims_t stride{g_.stride, g_.stride}, dilation{}, before{g_.padding, g_.padding};
    const auto after = [&](int in, int out) { return (out - 1) * g_.stride + g_.kernel - in - g_.padding; };
    const dnnl_dims_t behind{after(g_.height, g_.out_height()), after(g_.width, g_.out_width())};
    onednn::Attributes a;
    dnnl_primitive_desc_t p = nullptr;
#if DNNL_VERSION_MAJOR >= 3
    if (which == Which::forward)
      dnnl_convolution_forward_primitive_desc_create(&p, onednn::engine(), dnnl_forward_training, dnnl_convolution_direct,
                                                     x.get(), w.get(), nullptr, y.get(), stride, dilation, before, behind,
                                                     a.get());
    else if (which == Which::data)
      dnnl_convolution_backward_data_primitive_desc_create(&p, onednn::engine(), dnnl_convolution_direct, x.get(), w.get(),
                                                           y.get(), stride, dilation, before, behind, hint, a.get());
    else
      dnnl_convolution_backward_weights_primitive_desc_create(&p, onednn::engine(), dnnl_convolution_direct, x.get(), w.get(),
                                                              nullptr, y.get(), stride, dilation, before, behind, hint, a.get());
#else
    dnnl_convolution_desc_t c;
    const auto made =
        which == Which::forward
            ? dnnl_dilated_convolution_forward_desc_init(&c, dnnl_forward_training, dnnl_convolution_direct, x.get(), w.get(),
                                                         nullptr, y.get(), stride, dilation, before, behind)
        : which == Which::data
            ? dnnl_dilated_convolution_backward_data_desc_init(&c, dnnl_convolution_direct, x.get(), w.get(), y.get(), stride,
                                                               dilation, before, behind)
            : dnnl_dilated_convolution_backward_weights_desc_init(&c, dnnl_convolution_direct, x.get(), w.get(), nullptr, y.get(),
                                                                  stride, dilation, before, behind);
    if (made == dnnl_success) dnnl_primitive_desc_create(&p, &c, a.get(), onednn::engine(), hint);
#endif
    return onednn::Plan(p);
  }
  static Call make(const onednn::Plan& plan, const dnnl_query_t (&layouts)[3], const int (&names)[3]) {
    Call c;
    for (int i = 0; i < 3; ++i) {
      c.arrays[i] = Array(dnnl_memory_desc_get_size(plan.query(layouts[i])) / sizeof(float) + 16);
      scatter(c.arrays[i], 10 + static_cast<std::uint64_t>(i));
    }
    c.primitive =
        std::make_unique<onednn::Primitive>(plan, std::initializer_list<onednn::Argument>{{names[0], plan.query(layouts[0])},
                                                                                          {names[1], plan.query(layouts[1])},
                                                                                          {names[2], plan.query(layouts[2])}});
    return c;
  }

  ops::Conv2dGeometry g_;
  long n_;
  bool own_;
  Call forward_, data_, weights_;
};

/// Ours, with memory of its own.
using Geometry = ops::Conv2dGeometry;

template <Geometry G> struct Ours {
  using Kernel = ops::Conv2d<sk::Cpu, float, G>;
  Array x, weight, y, dx, dweight, packed, workspace;
  ops::Conv2dCall<float> call;

  explicit Ours(long n)
      : x(size(n * G.in_count())), weight(size(G.weight_rows() * G.weight_pitch())), y(size(n * G.out_count())),
        dx(size(n * G.in_count())), dweight(weight.size()), packed(size(Kernel::packed_weights + 16)),
        workspace(size(Kernel::workspace + 16)) {
    scatter(x, 1);
    for (long r = 0; r < G.weight_rows(); ++r)  // gaps are zero
      for (long f = 0; f < G.filters; ++f)
        weight.data()[r * G.weight_pitch() + f] = sk::random_uniform(3, 2, static_cast<std::uint64_t>(r * G.filters + f)) - 0.5f;
    call = {.batch = n,
            .x = x.data(),
            .weight = weight.data(),
            .y = y.data(),
            .dy = y.data(),
            .dx = dx.data(),
            .dweight = dweight.data(),
            .packed_weights = packed.data(),
            .workspace = workspace.data()};
    Kernel::pack_weights(call);
    Kernel::prepare(n);
  }
  /// The greatest difference of the first image's outputs to plain loops, beside their greatest value.
  double difference() {
    Kernel::forward(call);
    Array expected(size(G.out_count()));
    ops::Conv2dCall<float> one = call;
    one.batch = 1;
    one.y = expected.data();
    ops::reference::conv2d_forward(G, one);
    return apart(y.data(), expected.data(), G.out_count());
  }
  /// The same of both gradients, after difference(): those of the first image, as no other one has a gradient here.
  double difference_of_gradients() {
    const long n = call.batch, weights = static_cast<long>(weight.size());
    std::fill(y.data() + G.out_count(), y.data() + n * G.out_count(), 0.0f);
    std::fill_n(dweight.data(), weights, 0.0f);
    Kernel::backward(call);
    Array data(size(G.in_count())), of_weights(weight.size());
    std::fill_n(of_weights.data(), weights, 0.0f);
    ops::Conv2dCall<float> one = call;
    one.batch = 1;
    one.dx = data.data(), one.dweight = of_weights.data();
    ops::reference::conv2d_backward_data(G, one);
    ops::reference::conv2d_backward_weights(G, one);
    Kernel::forward(call);  // what is timed has gradients of every image
    return larger(apart(dx.data(), data.data(), G.in_count()), apart(dweight.data(), of_weights.data(), weights));
  }
};

double rate = 0;

/// Ours, and oneDNN's calls of the same work, over one set of arrays.
struct Placed {
  Candidate ours;
  std::vector<Candidate> peers;
};

bool add(Report& report, Line l, double flops, const std::vector<Placed>& places, double difference) {
  const Plan plan = within(report.quick());
  l.threads = 1;
  l.floor = 1e3 * flops / rate;
  if (!(difference <= 1e-4)) l.accepted = false, l.add("results differ by " + number(difference));
  if (const std::string reason = void_reason(places[0].ours, plan); !reason.empty()) l.accepted = false, l.add(reason);
  const std::vector<Candidate>& peers = places[0].peers;
  std::size_t best = 0;
  for (std::size_t i = 1; i < peers.size(); ++i)
    if (alone(peers[i], {plan.slice, 10}).least_a < alone(peers[best], {plan.slice, 10}).least_a) best = i;
  std::vector<std::pair<Candidate, Candidate>> pairs;
  for (const Placed& p : places) pairs.emplace_back(p.ours, p.peers[best]);
  const Comparison c = compare(pairs, plan);
  l.ours = 1e3 * c.a;
  l.peer = 1e3 * c.b;
  l.peer_name = best == 0 ? "oneDNN" : "oneDNN, its own layout of images";
  l.ratio = c.ratio;
  l.add(number(1e-9 * flops / c.least_a) + " GFLOP/s, oneDNN " + number(1e-9 * flops / c.least_b));
  report.add(l);
  return difference <= 1e-4;
}

template <Geometry G> bool convolution(Report& report, long n, const std::string& network) {
  struct Set {
    Ours<G> ours;
    Bare like_ours, own;
    explicit Set(long images) : ours(images), like_ours(G, images, false), own(G, images, true) {}
  };
  std::vector<std::unique_ptr<Set>> sets;
  std::vector<Placed> forward, backward;
  for (int i = 0; i < 4; ++i) {
    Set& s = *sets.emplace_back(std::make_unique<Set>(n));
    forward.push_back({candidate([&s] { Ours<G>::Kernel::forward(s.ours.call); }),
                       {candidate([&s] { s.like_ours.forward(); }), candidate([&s] { s.own.forward(); })}});
    backward.push_back({candidate([&s] { Ours<G>::Kernel::backward(s.ours.call); }),
                        {candidate([&s] { s.like_ours.backward(); }), candidate([&s] { s.own.backward(); })}});
  }
  const double difference = sets[0]->ours.difference(), of_gradients = sets[0]->ours.difference_of_gradients(),
               flops = static_cast<double>(n) * static_cast<double>(G.flops());
  const bool few = G.channels >= 16 && G.channels <= 64 && G.filters <= 64;
  const std::string name = network + ", " + std::to_string(G.kernel) + " x " + std::to_string(G.kernel) + ", " +
                           std::to_string(G.channels) + " to " + std::to_string(G.filters) + ", " + std::to_string(G.height) +
                           " x " + std::to_string(G.width) + (G.stride > 1 ? ", stride 2" : "");
  const Goal hope = few ? Goal{0.85} : Goal{};
  const std::string kernel(Ours<G>::Kernel::name);
  bool right =
      add(report, {.metric = name + ", forward (" + kernel + ")", .must = {1.03}, .hope = hope}, flops, forward, difference);
  right &= add(report, {.metric = name + ", backward", .must = {1.03}, .hope = hope}, 2 * flops, backward, of_gradients);
  return right;
}

template <int In, int Out> bool linear(Report& report, long n) {
  using Kernel = ops::Dense<sk::Cpu, float, In, Out>;
  constexpr long xp = sk::row_pitch(In), yp = sk::row_pitch(Out);
  Array x(size(n * xp)), w(size(In * yp)), y(size(n * yp)), z(size(n * yp)),
      packed(size(ops::dense_packed_weights(In, Out) + 16));
  scatter(x, 1);
  for (long i = 0; i < In; ++i)
    for (long j = 0; j < Out; ++j)
      w.data()[i * yp + j] = sk::random_uniform(3, 2, static_cast<std::uint64_t>(i * Out + j)) - 0.5f;
  const auto ours = [&] { Kernel::template forward<ops::Keep>(n, x.data(), w.data(), packed.data(), nullptr, y.data()); };
  const auto bare = [&] { dnnl_sgemm('N', 'N', n, Out, In, 1, x.data(), xp, w.data(), yp, 0, z.data(), yp); };
  ours(), bare();
  double difference = 0;
  for (long i = 0; i < n; ++i) difference = larger(difference, apart(y.data() + i * yp, z.data() + i * yp, Out));
  return add(report,
             {.metric = "Linear, " + std::to_string(In) + " to " + std::to_string(Out) + ", batch " + std::to_string(n) + " (" +
                        std::string(Kernel::kernel()) + ")",
              .must = {1.03}},
             2.0 * static_cast<double>(n) * In * Out, {{candidate(ours), {candidate(bare)}}}, difference);
}

/// Each of these: height, width, channels, filters, kernel, stride, padding.
template <Geometry... All> bool convolutions(Report& report, long n, const std::string& network) {
  bool right = true;
  ((right &= convolution<All>(report, n, network)), ...);
  return right;
}
/// The convolutions of ResNet-20 and ResNet-32, whose shapes are the same.
bool resnet_20(Report& report) {
  bool right =
      convolutions<Geometry{32, 32, 3, 16, 3, 1, 1}, Geometry{32, 32, 16, 16, 3, 1, 1}, Geometry{32, 32, 16, 32, 3, 2, 1},
                   Geometry{16, 16, 32, 32, 3, 1, 1}, Geometry{16, 16, 32, 64, 3, 2, 1}, Geometry{8, 8, 64, 64, 3, 1, 1}>(
          report, 128, "ResNet-20");
  right &= convolutions<Geometry{32, 32, 16, 32, 1, 2, 0}>(report, 128, "ResNet-20, projection");
  return right;
}
/// The convolutions of ResNet-50: the first stage's, or all.
bool resnet_50(Report& report, bool all) {
  bool right =
      convolutions<Geometry{56, 56, 64, 64, 1, 1, 0}, Geometry{56, 56, 64, 64, 3, 1, 1}, Geometry{56, 56, 64, 256, 1, 1, 0}>(
          report, 16, "ResNet-50");
  if (!all) return right;
  right &=
      convolutions<Geometry{224, 224, 3, 64, 7, 2, 3}, Geometry{56, 56, 256, 64, 1, 1, 0}, Geometry{56, 56, 256, 128, 1, 1, 0},
                   Geometry{56, 56, 128, 128, 3, 2, 1}, Geometry{56, 56, 256, 512, 1, 2, 0}, Geometry{28, 28, 128, 512, 1, 1, 0},
                   Geometry{28, 28, 512, 128, 1, 1, 0}, Geometry{28, 28, 128, 128, 3, 1, 1}, Geometry{28, 28, 512, 256, 1, 1, 0},
                   Geometry{28, 28, 256, 256, 3, 2, 1}, Geometry{28, 28, 512, 1024, 1, 2, 0},
                   Geometry{14, 14, 256, 1024, 1, 1, 0}, Geometry{14, 14, 1024, 256, 1, 1, 0},
                   Geometry{14, 14, 256, 256, 3, 1, 1}, Geometry{14, 14, 1024, 512, 1, 1, 0}, Geometry{14, 14, 512, 512, 3, 2, 1},
                   Geometry{14, 14, 1024, 2048, 1, 2, 0}, Geometry{7, 7, 512, 2048, 1, 1, 0}, Geometry{7, 7, 2048, 512, 1, 1, 0},
                   Geometry{7, 7, 512, 512, 3, 1, 1}>(report, 16, "ResNet-50");
  return right;
}
bool linears(Report& report) {
  bool right = linear<64, 10>(report, 128);
  right &= linear<512, 512>(report, 128);
  right &= linear<2048, 1000>(report, 128);
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  Report report("kernels", options(argc, argv), {"resnet_20", "resnet_50", "linear"});
  const ops::cpu::NoOmpTeam alone;
  rate = gemm_rate(report.quick());
  bool right = true;
  if (report.wants("resnet_20")) right &= resnet_20(report);
  if (report.wants("resnet_50")) right &= resnet_50(report, report.whole());
  if (report.wants("linear")) right &= linears(report);
  return report.finish(right);
}
#else
int main(int argc, char** argv) {
  bench::Report report("kernels", bench::options(argc, argv));
  report.add({.metric = "kernels against oneDNN's", .note = "this build has no oneDNN", .accepted = false});
  return report.finish(true);
}
#endif
