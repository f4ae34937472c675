// SPDX-License-Identifier: Apache-2.0
// What docs/guide/data.md quotes of data that needs skein::images.
#include <skein/data/image_folder.hpp>
#include <skein/data/npy_pair.hpp>
#include <skein/data/synthetic_digits.hpp>
#include <skein/data/write_image_folder.hpp>

#include <catch2/catch.hpp>
#include "../support/temporary_folder.hpp"

namespace sk = skein;

TEST_CASE("The guide's images are packed") {
  const support::TemporaryFolder folder;
  sk::data::write_image_folder(sk::data::synthetic_digits(200, sk::Seed{1}).normalize(0, 1), folder / "train");
  // [quote pack]
  const sk::data::ImageFolder images(folder / "train", {.size = {32, 32}});  // (32, 32, 3), read file by file
  sk::data::to_npy(images, folder / "x.npy", folder / "y.npy");              // once
  const auto packed = sk::data::from_npy(folder / "x.npy", folder / "y.npy").normalize(0.47, 0.25);
  // [end]
  CHECK(packed.size() == 200);
  CHECK(packed.sample_extents() == sk::Extents{3, {32, 32, 3}});
}
