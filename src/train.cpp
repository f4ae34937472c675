// SPDX-License-Identifier: Apache-2.0
// skein::compiled: the bodies of nn/, optim/ and train/.
#include <skein/nn/check_batch.ipp>
#include <skein/nn/summary.ipp>
#include <skein/optim/groups.ipp>
#include <skein/optim/lbfgs/line_search.ipp>
#include <skein/optim/schedule.ipp>
#include <skein/optim/schedule_length.ipp>
#include <skein/optim/state.ipp>
#include <skein/optim/state_updates.ipp>
#include <skein/train/agree_on_failure.ipp>
#include <skein/train/agreement.ipp>
#include <skein/train/callback.ipp>
#include <skein/train/callbacks.ipp>
#include <skein/train/checkpoint_format.ipp>
#include <skein/train/checkpoint_reader.ipp>
#include <skein/train/checkpoint_writer.ipp>
#include <skein/train/commit_folder.ipp>
#include <skein/train/commit_training.ipp>
#include <skein/train/commit_writer.ipp>
#include <skein/train/curves.ipp>
#include <skein/train/evaluate_loader.ipp>
#include <skein/train/feature_order.ipp>
#include <skein/train/fit_control.ipp>
#include <skein/train/fit_loop.ipp>
#include <skein/train/fit_signals.ipp>
#include <skein/train/fit_state.ipp>
#include <skein/train/hash.ipp>
#include <skein/train/history.ipp>
#include <skein/train/in_archive.ipp>
#include <skein/train/kept_objects.ipp>
#include <skein/train/manifest.ipp>
#include <skein/train/metrics/area_under_curve.ipp>
#include <skein/train/metrics/class_scores.ipp>
#include <skein/train/metrics/confusion_matrix.ipp>
#include <skein/train/metrics/r2.ipp>
#include <skein/train/not_finite.ipp>
#include <skein/train/out_archive.ipp>
#include <skein/train/pieces.ipp>
#include <skein/train/preparation.ipp>
#include <skein/train/progress.ipp>
#include <skein/train/records.ipp>
#include <skein/train/replicas.ipp>
#include <skein/train/run_folder.ipp>
#include <skein/train/safetensors.ipp>
#include <skein/train/saved_array.ipp>
#include <skein/train/signal_watch.ipp>
#include <skein/train/step/step_parts.ipp>
#include <skein/train/text.ipp>
#include <skein/train/training_file.ipp>
#include <skein/train/training_position.ipp>
#include <skein/train/watch.ipp>
#include <skein/train/weights_file.ipp>
#include <skein/train/weights_npz.ipp>
#include <skein/train/while_busy.ipp>

namespace skein::inline SKEIN_ABI::train {
template std::string first_buffer_not_finite<float>(std::span<const float>, plan::Range, std::span<const plan::Entry>,
                                                    std::span<const plan::PathPart>);
template std::string first_buffer_not_finite<double>(std::span<const double>, plan::Range, std::span<const plan::Entry>,
                                                     std::span<const plan::PathPart>);
template std::string first_state_not_finite<float>(std::span<const float>, plan::Range, const std::string&,
                                                   std::span<const plan::Entry>, std::span<const plan::PathPart>,
                                                   std::span<const optim::ParameterGroupRange>);
template std::string first_state_not_finite<double>(std::span<const double>, plan::Range, const std::string&,
                                                    std::span<const plan::Entry>, std::span<const plan::PathPart>,
                                                    std::span<const optim::ParameterGroupRange>);
template std::string first_weight_not_finite<float>(std::span<const float>, plan::Range, const std::vector<LayerRange>&,
                                                    std::span<const optim::ParameterGroupRange>);
template std::string first_weight_not_finite<double>(std::span<const double>, plan::Range, const std::vector<LayerRange>&,
                                                     std::span<const optim::ParameterGroupRange>);
template std::string first_not_finite<float>(std::span<const float>, const std::vector<LayerRange>&,
                                             const std::function<bool(std::span<const float>)>&, const std::function<bool()>&);
template std::string first_not_finite<double>(std::span<const double>, const std::vector<LayerRange>&,
                                              const std::function<bool(std::span<const double>)>&, const std::function<bool()>&);
}  // namespace skein::inline SKEIN_ABI::train
