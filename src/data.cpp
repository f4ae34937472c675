// SPDX-License-Identifier: Apache-2.0
// skein::compiled: the bodies of data/ and tensor/.
#include <skein/data/byte_source.ipp>
#include <skein/data/cifar10.ipp>
#include <skein/data/csv.ipp>
#include <skein/data/csv_cursor.ipp>
#include <skein/data/finite.ipp>
#include <skein/data/from_tensors.ipp>
#include <skein/data/idx.ipp>
#include <skein/data/in_memory.ipp>
#include <skein/data/loader.ipp>
#include <skein/data/map_npy.ipp>
#include <skein/data/mnist.ipp>
#include <skein/data/mnist_or_synthetic.ipp>
#include <skein/data/moments.ipp>
#include <skein/data/normalization.ipp>
#include <skein/data/normalize.ipp>
#include <skein/data/standardizer.ipp>
#include <skein/data/synthetic_digits.ipp>
#include <skein/data/table.ipp>
#include <skein/data/table_categories.ipp>
#include <skein/data/table_encoder.ipp>
#include <skein/data/table_split.ipp>
#include <skein/data/text_pool.ipp>
#include <skein/data/view.ipp>
#include <skein/tensor/npy_header.ipp>
#include <skein/tensor/npz.ipp>
