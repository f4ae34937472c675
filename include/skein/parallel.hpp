// SPDX-License-Identifier: Apache-2.0
// Every parallel policy, and what goes with them: compression, all-reduce algorithms, communicators of several levels,
// advice and pictures. Beside skein.hpp, so that a program with DataParallel alone does not compile the rest; networks and slow
// ranks that are only simulated are in simulate.hpp.
#pragma once
#pragma push_macro("I")  // as in skein.hpp
#undef I
#include "comm/algorithms/all_reduce.hpp"
#include "comm/compress/error_feedback.hpp"
#include "comm/compress/compressed_collectives.hpp"
#include "comm/compress/half_codec.hpp"
#include "comm/compress/int8_codec.hpp"
#include "comm/compress/power_sgd.hpp"
#include "comm/compress/top_k.hpp"
#include "comm/counted.hpp"
#include "comm/hierarchical/hierarchical.hpp"
#include "comm/measure.hpp"
#include "parallel/data/algorithm.hpp"
#include "parallel/check_policy.hpp"
#include "parallel/comm_policy_state.hpp"
#include "parallel/compose.hpp"
#include "parallel/data/data_parallel.hpp"
#include "parallel/average/gossip.hpp"
#include "parallel/average/model_average.hpp"
#include "parallel/server/parameter_server.hpp"
#include "parallel/pipeline/pipeline.hpp"
#include "parallel/average/post_local_sgd.hpp"
#include "parallel/data/reproducible.hpp"
#include "parallel/data/exchange_by.hpp"
#include "parallel/data/gradient_workers.hpp"
#include "parallel/data/sharded.hpp"
#include "parallel/data/data_parallel_option.hpp"
#include "parallel/data/sync_batch_norm.hpp"
#include "parallel/data/sync_every.hpp"
#include "parallel/data/compress.hpp"
#include "plan/advise.hpp"
#include "plan/schedule_svg.hpp"
#include "plan/schedule_text.hpp"
#pragma pop_macro("I")
