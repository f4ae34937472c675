// expect: the batch is in a device's memory and the model is not there: give Model the batch's device
// SPDX-License-Identifier: Apache-2.0
#include <skein/device/batch_view.hpp>

#ifdef SKEIN_TWIN
using Device = skein::Cuda;
#else
using Device = skein::Cpu;
#endif

long count(const skein::BatchView<float, skein::Cuda>& there) { return skein::batch_view<float, Device>(there).count; }
