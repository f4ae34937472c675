// SPDX-License-Identifier: Apache-2.0
// Compressed sums over the ranks of any communicator: against the sum of what each rank decodes, and bytes against the plan.
// Failures throw.
#pragma once
#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/comm/compress/error_feedback.hpp>
#include <skein/comm/compress/compressed_collectives.hpp>
#include <skein/comm/compress/half_codec.hpp>
#include <skein/comm/compress/int8_codec.hpp>
#include <skein/comm/compress/power_sgd.hpp>
#include <skein/comm/compress/top_k.hpp>
#include <skein/plan/collective_check.hpp>

#include <cmath>

#include "collectives.hpp"

namespace compress_cases {
namespace sk = skein;
using collectives::require;

inline std::vector<float> values(int rank, std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(static_cast<float>(i) * 0.37f + static_cast<float>(rank) * 1.3f);
  return v;
}
template <class Comm> void same_everywhere(Comm& world, const std::vector<float>& v, const std::string& what) {
  std::vector<float> first = v;
  world.broadcast(first, 0);
  require(collectives::same_bits(v, first), what + ": other bits than rank 0");
}

/// Not linear: the gathered sum is the sum of what each rank's values decode to, to the bit; a ring of wires sends what the plan
/// says.
template <class C, class Comm> void gathered(Comm& world, C compressor, std::size_t n) {
  const int ranks = world.size();
  std::vector<float> expected(n);
  for (int r = 0; r < ranks; ++r) {
    C own = compressor;
    std::vector<float> v = values(r, n);
    sk::comm::compress_in_place(own, v);
    for (std::size_t i = 0; i < n; ++i) expected[i] = r == 0 ? v[i] : expected[i] + v[i];
  }
  std::vector<float> v = values(world.rank(), n);
  C first = compressor;
  sk::comm::compressed_all_gather(world, first, v);
  require(collectives::same_bits(v, expected), std::string(C::name) + ": gathered sum");

  using Element = typename C::Element;
  C second = compressor;
  std::vector<float> w = values(world.rank(), n);
  sk::comm::Traffic traffic;
  sk::comm::compressed_all_gather(
      second, std::span<float>(w), ranks, sk::Mean{}, [&](std::span<const Element> own, std::span<Element> all) {
        std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(own.size()) * world.rank());
        std::vector<Element> staging;
        traffic = sk::comm::run_table(world, all, sk::plan::RingAllGather{ranks, static_cast<long>(all.size())},
                                      sk::comm::NoReduction{}, staging);
      });
  for (std::size_t i = 0; i < n; ++i)
    require(std::abs(w[i] - expected[i] / static_cast<float>(ranks)) <= 1e-6f, std::string(C::name) + ": gathered mean");
  const long bytes = static_cast<long>(sk::comm::wire_bytes(compressor, n));
  require(traffic == sk::comm::Traffic{ranks - 1, (ranks - 1) * bytes}, std::string(C::name) + ": bytes of the gather");
}

/// Linear: near the sum, the same bits on all ranks, and the bytes of a ring of wires.
template <class C, class Comm> void reduced(Comm& world, C compressor, std::size_t n, float bound) {
  const int ranks = world.size();
  std::vector<float> sum(n);
  for (int r = 0; r < ranks; ++r) {
    const std::vector<float> v = values(r, n);
    for (std::size_t i = 0; i < n; ++i) sum[i] += v[i];
  }
  std::vector<float> v = values(world.rank(), n), w = v;
  C first = compressor, second = compressor;
  sk::comm::compressed_all_reduce(world, first, v);
  same_everywhere(world, v, std::string(C::name));
  sk::comm::Traffic traffic;
  std::vector<typename C::Element> wire, staging;
  long planned = 0, messages = 0;
  sk::comm::compressed_all_reduce(second, std::span<float>(w), wire, [&](std::span<typename C::Element> x) {
    const sk::plan::RingAllReduce table{ranks, static_cast<long>(x.size())};
    const sk::comm::Traffic t = sk::comm::run_table(world, x, table, sk::Sum{}, staging);
    traffic.messages += t.messages;
    traffic.bytes += t.bytes;
  });
  for (int round = 0; round < C::rounds; ++round) {
    const sk::plan::SentByRank sent =
        sk::plan::sent_by(sk::plan::RingAllReduce{ranks, static_cast<long>(compressor.elements(n, round))}, world.rank());
    planned += sent.values * static_cast<long>(sizeof(typename C::Element));
    messages += sent.messages;
  }
  require(traffic == sk::comm::Traffic{messages, planned}, std::string(C::name) + ": bytes of the ring");
  if (world.all_reduce(traffic.bytes) != 2 * (ranks - 1) * static_cast<long>(sk::comm::wire_bytes(compressor, n)))
    require(false, std::string(C::name) + ": bytes of all ranks");
  for (std::size_t i = 0; i < n; ++i)
    require(std::abs(v[i] - sum[i]) <= bound && std::abs(w[i] - sum[i]) <= bound,
            std::string(C::name) + ": a value is far from the sum");
}

/// Over steps: the sum of what all ranks have got, plus all residuals, is the sum of all inputs.
template <class C, class Comm> void feedback(Comm& world, C compressor, double bound) {
  const std::size_t n = 600;
  sk::comm::ErrorFeedback<C> own{compressor};
  std::vector<double> inputs(n), said(n);
  for (int step = 0; step < 10; ++step) {
    std::vector<float> v = values(world.rank() + 10 * step, n);
    for (std::size_t i = 0; i < n; ++i) inputs[i] += v[i];
    if constexpr (C::linear) sk::comm::compressed_all_reduce(world, own, v);
    else sk::comm::compressed_all_gather(world, own, v);
    for (std::size_t i = 0; i < n; ++i) said[i] += v[i];
  }
  std::vector<double> kept(own.residual().begin(), own.residual().end());
  world.all_reduce(inputs);
  world.all_reduce(kept);
  for (std::size_t i = 0; i < n; ++i)
    require(std::abs(said[i] + kept[i] - inputs[i]) <= bound,
            std::string(C::name) + ": said and kept do not add up to what came in");
}

template <class Comm> void everything(Comm& world) {
  const float ranks = static_cast<float>(world.size());
  gathered(world, sk::comm::Int8Codec<64>{}, 1000);
  gathered(world, sk::comm::TopK<10>{}, 1001);
  gathered(world, sk::comm::HalfCodec<sk::bf16>{}, 100);
  reduced(world, sk::comm::HalfCodec<float>{}, 1000, 1e-5f);
  reduced(world, sk::comm::HalfCodec<sk::bf16>{}, 1000, ranks * ranks * 0x1p-8f);
  reduced(world, sk::comm::HalfCodec<sk::fp16>{}, 1000, ranks * ranks * 0x1p-11f);
  reduced(world, sk::comm::PowerSgd<3>{1, 24}, 960, 2e-4f);  // sines of one frequency in a matrix have rank 2
  feedback(world, sk::comm::Int8Codec<64>{}, 1e-4);
  feedback(world, sk::comm::TopK<10>{}, 1e-4);
  feedback(world, sk::comm::PowerSgd<2>{1}, 1e-3);
}

}  // namespace compress_cases
