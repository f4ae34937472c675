// SPDX-License-Identifier: Apache-2.0
// Includes nothing: CMake makes a precompiled header only for a target that has a source to use it.
