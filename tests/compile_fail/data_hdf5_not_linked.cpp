// expect: data sets in HDF5 files need HDF5, and this program is built without it: link skein::hdf5
// SPDX-License-Identifier: Apache-2.0
#undef SKEIN_WITH_HDF5
#define SKEIN_WITH_HDF5 0
#include <skein/data/hdf5_set.hpp>

namespace data = skein::data;

#ifdef SKEIN_TWIN
std::int64_t images(const data::Hdf5Set& there) { return there.size(); }
#else
std::int64_t images() { return data::Hdf5Set("images.h5").size(); }
#endif
