// SPDX-License-Identifier: Apache-2.0
// Pipelines in 16 bits, with loss scaling, clipping and transforms, over threads; tests/distributed has the same over processes.
#include "../../support/pipeline_precision_cases.hpp"
#include "../../support/at_every_size.hpp"

namespace cases = pipeline_cases;
namespace sk = skein;
using S = sk::parallel::PipelineSchedule;
using support::on_threads;

TEST_CASE("a pipeline in 16 bits gives the bits of the serial run", "[parallel]") {
  sk::SelfComm self;
  cases::precision_agrees_with_serial<sk::precision::bf16>(self, {S::one_f_one_b});
  on_threads(4, [](auto& w) {
    cases::precision_agrees_with_serial<sk::precision::bf16>(w, {S::gpipe, S::one_f_one_b, S::zero_bubble});
  });
  on_threads(2, [](auto& w) { cases::precision_agrees_with_serial<sk::precision::bf16>(w, {S::interleaved}); });
}
TEST_CASE("stages whose loss is scaled skip steps together", "[parallel]") {
  sk::SelfComm self;
  cases::precision_agrees_with_serial<sk::precision::fp16>(self, {S::zero_bubble});
  on_threads(4, [](auto& w) {
    cases::precision_agrees_with_serial<sk::precision::fp16>(w, {S::gpipe, S::one_f_one_b, S::zero_bubble});
  });
  on_threads(2, [](auto& w) { cases::trains_scaled(w); });
}
TEST_CASE("a skipped step of a pipeline leaves running statistics as they were", "[parallel]") {
  sk::SelfComm self;
  cases::gives_back_statistics(self);
  on_threads(4, [](auto& w) { cases::gives_back_statistics(w); });
}
TEST_CASE("a chain's norms are over all stages, its tensors a stage's own", "[parallel]") {
  on_threads(4, [](auto& w) { cases::transforms_agree_with_serial<sk::precision::fp32>(w); });
}
TEST_CASE("links carry activations as they are stored", "[parallel]") {
  on_threads(4, [](auto& w) { cases::links_carry_sixteen_bits(w); });
}
TEST_CASE("PipeDream in 16 bits", "[parallel]") {
  on_threads(4, [](auto& w) { cases::pipedream_in_sixteen_bits(w); });
}
