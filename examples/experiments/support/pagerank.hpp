// SPDX-License-Identifier: Apache-2.0
// PageRank by power iteration, written once for every device, in four versions that differ in how a node gets what its neighbours
// send it: messages, a sparse matrix, a dense matrix times a diagonal one, a dense matrix scaled beforehand.
//     x <- d (sum over links i -> j of x_i / out-degree_i + the ranks of nodes without links / N) + (1 - d) / N
// (Page, Brin, Motwani and Winograd, "The PageRank citation ranking", 1999; dangling nodes as in NetworkX.)
#pragma once
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include <skein/ops/for_each.hpp>
#include <skein/ops/sliced_product.hpp>
#include <skein/ops/sparse_product.hpp>
#include <skein/tensor/create.hpp>

#include "edge_list.hpp"

namespace experiments {

/// How many of the links begin at each node.
inline std::vector<std::int64_t> out_degrees(std::span<const std::int32_t> from, long nodes) {
  std::vector<std::int64_t> degrees(static_cast<std::size_t>(nodes));
  for (const std::int32_t node : from) ++degrees[static_cast<std::size_t>(node)];
  return degrees;
}

/// The graph as the iteration needs it, on the host. An edge that is there twice counts once.
struct Links {
  sk::Csr<void> in;               // row j: the nodes that link to j      (nodes, nodes)
  sk::Tensor<float, 1> share;     // 1 / out-degree, 0 of a dangling node (nodes)
  sk::Tensor<float, 1> dangling;  // 1 of a node without links, else 0    (nodes)
  bool any_dangling = false;

  explicit Links(const EdgeList& g)
      : in(sk::Csr<void>::from_triples(g.nodes(), g.nodes(), g.to, g.from)), share(sk::dims(g.nodes())),
        dangling(sk::dims(g.nodes())) {
    const std::vector<std::int64_t> degrees = out_degrees({in.indices().data, static_cast<std::size_t>(in.entries())}, nodes());
    for (long i = 0; i < nodes(); ++i) {
      const std::int64_t links = degrees[static_cast<std::size_t>(i)];
      dangling.data()[i] = links > 0 ? 0.f : 1.f;
      any_dangling |= links == 0;
      if (links > 0) share.data()[i] = 1 / static_cast<float>(links);
    }
  }
  long nodes() const { return in.rows(); }
};

/// Node by node: each puts its share into a mailbox of every node that it links to; then each adds up what lies in its own.
template <class Device> struct Messages {
  sk::Tensor<std::int32_t, 1, Device> out, slots, in;  // where a node's slots begin; the slots; where its mailboxes begin
  sk::Tensor<float, 1, Device> mail;                   // (edges)

  struct Send {
    const std::int32_t *out, *slots;
    const float* sent;
    float* mail;
    long first;
    constexpr void operator()(long i) const {
      for (long k = out[first + i]; k < out[first + i + 1]; ++k) mail[slots[k]] = sent[first + i];
    }
  };
  struct Receive {
    const std::int32_t* in;
    const float* mail;
    float* y;
    long first;
    constexpr void operator()(long i) const {
      double total = 0;
      for (long k = in [first + i]; k < in[first + i + 1]; ++k) total += static_cast<double>(mail[k]);
      y[first + i] = static_cast<float>(total);
    }
  };

  explicit Messages(const Links& links, Device where = {}) {
    const long n = links.nodes();
    sk::Tensor<std::int32_t, 1> begin(sk::dims(n + 1)), slot(sk::dims(links.in.entries()));
    for (long k = 0; k < links.in.entries(); ++k) ++begin.data()[links.in.indices().data[k] + 1];
    for (long i = 0; i < n; ++i) begin.data()[i + 1] += begin.data()[i];
    std::vector<std::int32_t> next(begin.data(), begin.data() + n);
    for (long k = 0; k < links.in.entries(); ++k)
      slot.data()[next[static_cast<std::size_t>(links.in.indices().data[k])]++] = static_cast<std::int32_t>(k);
    sk::Tensor<std::int32_t, 1> boxes(sk::dims(n + 1));
    for (long i = 0; i <= n; ++i) boxes.data()[i] = static_cast<std::int32_t>(links.in.offsets().data[i]);
    out = begin.to(where), slots = slot.to(where), in = boxes.to(where);
    mail = sk::zeros<float>(where, links.in.entries());
  }
  void operator()(const sk::Worker& w, const float*, const float* sent, float* y) {
    const auto [low, high] = w.slice(out.size() - 1);
    sk::ops::for_each<Device>(high - low, Send{out.data(), slots.data(), sent, mail.data(), low});
    w.barrier();
    sk::ops::for_each<Device>(high - low, Receive{in.data(), mail.data(), y, low});
  }
};

/// A sparse matrix of ones (its pattern alone) times the shares. Index: 16 bits serve up to 65,536 nodes.
template <class Device, class Index = std::int32_t> struct Sparse {
  sk::Csr<void, Device, Index> in;

  explicit Sparse(const Links& links, Device where = {}) : in(links.in.with_index<Index>().to(where)) {}
  void operator()(const sk::Worker& w, const float*, const float* sent, float* y) { sk::ops::spmv(in.view(), sent, y, w); }
};

/// The same, laid out for products on the host: tiles of 16 rows by 31 columns.
template <class Device> struct Sliced;
template <> struct Sliced<sk::Cpu> {
  sk::SlicedPattern in;

  explicit Sliced(const Links& links, sk::Cpu = {}) : in(links.in) {}
  void operator()(const sk::Worker& w, const float*, const float* sent, float* y) { sk::ops::spmv(in, sent, y, w); }
};

namespace detail {
/// The worker's rows of a dense matrix times x.
template <class Device> void dense_rows(const sk::Worker& w, const sk::Tensor<float, 2, Device>& a, const float* x, float* y) {
  const long n = a.extent(1);
  const auto [low, high] = w.slice(a.extent(0));
  if (low == high) return;
  const sk::TensorView<const float, 2, Device> rows(a.data() + low * n, sk::dims(high - low, n), sk::dims(n, 1L), a.device());
  const sk::TensorView<const float, 1, Device> vector(x, sk::dims(n), sk::dims(1L), a.device());
  sk::TensorView<float, 1, Device>(y + low, sk::dims(high - low), sk::dims(1L), a.device()).assign(mv(rows, vector));
}
/// Row j, column i: weight[i] where i links to j.
inline sk::Tensor<float, 2> dense_matrix(const Links& links, bool scaled) {
  sk::Tensor<float, 2> a(sk::dims(links.nodes(), links.nodes()));
  for (long j = 0; j < links.nodes(); ++j)
    for (long k = links.in.offsets().data[j]; k < links.in.offsets().data[j + 1]; ++k) {
      const long i = links.in.indices().data[k];
      a.data()[j * links.nodes() + i] = scaled ? links.share.data()[i] : 1.f;
    }
  return a;
}
}  // namespace detail

/// Dense, with the full product in every iteration: matrix (diagonal of shares (x)), from the right.
template <class Device> struct DenseProduct {
  sk::Tensor<float, 2, Device> matrix, diagonal;  // (nodes, nodes) each
  sk::Tensor<float, 1, Device> product;           // (nodes)

  explicit DenseProduct(const Links& links, Device where = {})
      : matrix(detail::dense_matrix(links, false).to(where)), diagonal(diag(links.share).to(where)),
        product(sk::zeros<float>(where, links.nodes())) {}
  void operator()(const sk::Worker& w, const float* x, const float*, float* y) {
    detail::dense_rows(w, diagonal, x, product.data());
    w.barrier();
    detail::dense_rows(w, matrix, product.data(), y);
  }
};

/// Dense, with the matrix scaled once.
template <class Device> struct DenseScaled {
  sk::Tensor<float, 2, Device> matrix;  // (nodes, nodes)

  explicit DenseScaled(const Links& links, Device where = {}) : matrix(detail::dense_matrix(links, true).to(where)) {}
  void operator()(const sk::Worker& w, const float* x, const float*, float* y) { detail::dense_rows(w, matrix, x, y); }
};

namespace detail {
/// The ranks out of what the nodes have received, and what each sends next. (Not within the class: nvcc takes no private
/// kernels.)
struct Update {
  const float *y, *share, *leaked;
  float *x, *sent;
  long first;
  float damping, base, each;
  constexpr void operator()(long i) const {
    const long k = first + i;
    const float rank = damping * (y[k] + (leaked ? *leaked * each : 0.f)) + base;
    x[k] = rank;
    sent[k] = rank * share[k];
  }
};
}  // namespace detail

/// Ranks, and iterations on them. `Version` is one of the above.
template <class Device, class Version> class PageRank {
 public:
  /// Starts with ranks of `start` (0: 1 / nodes) everywhere.
  PageRank(const Links& links, double damping, float start = 0, Device where = {})
      : version_(links, where), nodes_(links.nodes()), any_dangling_(links.any_dangling), damping_(static_cast<float>(damping)),
        share_(links.share.to(where)), dangling_(links.dangling.to(where)), x_(sk::dims(nodes_), where),
        sent_(sk::dims(nodes_), where), y_(sk::zeros<float>(where, nodes_)) {
    if (!(damping > 0 && damping < 1))
      throw sk::ArgumentError("a damping factor of " + std::to_string(damping) + ": it lies between 0 and 1");
    x_ = sk::full(sk::dims(nodes_), start != 0 ? start : 1 / static_cast<float>(nodes_), where);
    sent_ = x_ * share_;
  }

  /// k iterations. On a GPU one worker tells it what to do, and nothing waits.
  void iterate(sk::Workers& workers, long k) {
    workers.run([&](sk::Worker& w) {
      for (long i = 0; i < k; ++i) {
        version_(w, x_.data(), sent_.data(), y_.data());
        w.barrier();
        if (any_dangling_) {
          if (w.index == 0) leaked_ = sum(row(x_) * row(dangling_), 1);
          w.barrier();
        }
        const auto [low, high] = w.slice(nodes_, 16);
        sk::ops::for_each<Device>(
            high - low,
            detail::Update{y_.data(), share_.data(), any_dangling_ ? leaked_.data() : nullptr, x_.data(), sent_.data(), low,
                           damping_, (1 - damping_) / static_cast<float>(nodes_), 1 / static_cast<float>(nodes_)});
        w.barrier();
      }
    });
  }
  /// On the host; waits for a GPU.
  sk::Tensor<float, 1> ranks() const { return x_.to(sk::Cpu{}); }

 private:
  sk::TensorView<const float, 2, Device> row(const sk::Tensor<float, 1, Device>& v) const {
    return {v.data(), sk::dims(1L, nodes_), sk::dims(nodes_, 1L), v.device()};
  }

  Version version_;
  long nodes_;
  bool any_dangling_;
  float damping_;
  sk::Tensor<float, 1, Device> share_, dangling_, x_, sent_, y_, leaked_;
};

/// The largest difference of a and b, each as a vector of length one (L2), over the largest value of a.
inline double apart(const sk::Tensor<float, 1>& a, const sk::Tensor<float, 1>& b) {
  double aa = 0, bb = 0, most = 0, difference = 0;
  for (long i = 0; i < a.size(); ++i)
    aa += static_cast<double>(a(i)) * static_cast<double>(a(i)), bb += static_cast<double>(b(i)) * static_cast<double>(b(i));
  for (long i = 0; i < a.size(); ++i) {
    const double p = static_cast<double>(a(i)) / std::sqrt(aa), q = static_cast<double>(b(i)) / std::sqrt(bb);
    most = std::max(most, std::fabs(p));
    difference = std::isfinite(p - q) ? std::max(difference, std::fabs(p - q)) : HUGE_VAL;
  }
  return difference / most;
}

}  // namespace experiments
