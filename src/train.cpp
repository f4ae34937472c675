// SPDX-License-Identifier: Apache-2.0
// skein::compiled: the bodies of nn/, optim/ and train/.
#include <skein/nn/summary.ipp>
#include <skein/optim/groups.ipp>
#include <skein/optim/schedule.ipp>
#include <skein/train/atomic_file.ipp>
#include <skein/train/callback.ipp>
#include <skein/train/callbacks.ipp>
#include <skein/train/checkpoint_reader.ipp>
#include <skein/train/checkpoint_writer.ipp>
#include <skein/train/control.ipp>
#include <skein/train/curves.ipp>
#include <skein/train/data_check.ipp>
#include <skein/train/fit_loop.ipp>
#include <skein/train/hash.ipp>
#include <skein/train/history.ipp>
#include <skein/train/in_archive.ipp>
#include <skein/train/input_file.ipp>
#include <skein/train/out_archive.ipp>
#include <skein/train/progress.ipp>
#include <skein/train/records.ipp>
#include <skein/train/section.ipp>
#include <skein/train/text.ipp>
