// SPDX-License-Identifier: Apache-2.0
// Checkpoint files: CheckpointWriter and CheckpointReader. checkpoint_format.hpp describes the format.
#pragma once
#include "checkpoint_reader.hpp"
#include "checkpoint_writer.hpp"
