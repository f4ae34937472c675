// SPDX-License-Identifier: Apache-2.0
// An embedding on both devices: the same rows, the same sums of equal tokens; a token that is none touches nothing beside the
// table.
#include <catch2/catch.hpp>

#include <skein/nn/fused_network.hpp>

#include <skein/cuda.hpp>

#include "../../support/close.hpp"
#include "../../support/layer_harness.hpp"
#include "../../support/own_layers.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
/// Embedding<V, W> on T tokens, on Device.
template <int V, int W, int T, class S, class Device, template <int, int> class Table = own_layers::Embedding> struct LookUp {
  using Layer = nn::ExpressionLayer<Table<V, W>>;
  support::LayerHarness<Layer, sk::Tokens<T>, S, Device> h;
  explicit LookUp(long batch, int largest = V) : h(batch) {
    h.set_tokens([=](long b, long t) { return (b * 7 + t * t) % largest; });
    h.forward();
    h.backward(false);
    h.backward(false, true);  // adds to the first
  }
};

template <int V, int W, int T, class S, template <int, int> class Table = own_layers::Embedding> void agree(long batch) {
  INFO(V << " tokens, " << W << " wide, " << T << " positions, " << batch << " samples");
  LookUp<V, W, T, S, sk::Cpu, Table> here(batch);
  LookUp<V, W, T, S, sk::Cuda, Table> there(batch);
  long wrong = 0;
  for (long i = 0; i < batch * T * W; ++i) wrong += here.h.y[i] != there.h.y[i];
  for (long i = 0; i < V * W; ++i) {
    const long at = here.h.parameter_index(0, i);
    wrong += !support::close<S>(here.h.gradients()[at], there.h.gradients()[at], support::Roundings::arithmetic,
                                static_cast<double>(2 * batch * T));
  }
  CHECK(wrong == 0);
  CHECK(there.h.worst_gap() == 0);
  CHECK(there.h.intact());
}
}  // namespace

TEST_CASE("An embedding is the same on both devices", "[nn][cuda]") {
  agree<5, 3, 4, double>(1);
  agree<65, 20, 32, float>(9);
  agree<5, 20, 32, float, own_layers::PaddedEmbedding>(9);
}
TEST_CASE("A token beyond the table reads and writes within it", "[nn][cuda]") {
  CHECK(LookUp<5, 3, 4, float, sk::Cuda>(6, 100).h.intact());
}
