# SPDX-License-Identifier: Apache-2.0
"""Conan 2 recipe. Header-only, unless header_only=False adds the library skein::compiled. The other options add a requirement and never
change a header-only package: skein's own CMake package (find_package(skein COMPONENTS mpi)) takes what it finds. System packages serve too, as
[platform_requires] of the profile."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class SkeinConan(ConanFile):
    name = "skein"
    description = "Header-only C++20 library for training neural networks in parallel"
    license = "Apache-2.0"
    topics = ("neural-networks", "training", "data-parallel", "mpi", "header-only")
    package_type = "static-library"                              # see configure()
    settings = "os", "arch", "compiler", "build_type"
    options = {part: [True, False] for part in ("header_only", "with_xsimd", "with_onednn", "with_zlib", "with_json", "with_fmt", "with_mpi")} | {"march": ["", "ANY"]}
    default_options = {"header_only": True, "march": "", "with_xsimd": True, "with_onednn": True, "with_zlib": True, "with_json": True, "with_fmt": True,
                       "with_mpi": False}
    exports_sources = "CMakeLists.txt", "LICENSE", "include/*", "src/*", "cmake/*"

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "include", "skein", "core", "config.hpp"))
        self.version = ".".join(re.findall(r"#define SKEIN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))

    def configure(self):
        if self.options.header_only:
            self.package_type = "header-library"

    def requirements(self):
        """A program that includes skein includes their headers, and links them, in either form."""
        whole = {"transitive_headers": True, "transitive_libs": True}
        if self.options.with_xsimd:
            self.requires("xsimd/[>=8 <9]", **whole)          # 9 has other names
        if self.options.with_onednn:
            self.requires("onednn/[>=2.6]", **whole)
        if self.options.with_zlib:
            self.requires("zlib/[>=1.2.11]", **whole)
        if self.options.with_json:
            self.requires("nlohmann_json/[>=3]", **whole)
        if self.options.with_fmt:
            self.requires("fmt/[>=9]", **whole)               # for skein/tensor/format.hpp
        if self.options.with_mpi:
            self.requires("openmpi/[>=4]", **whole)
            self.requires("boost/[>=1.74]", options={"without_mpi": False}, **whole)   # Boost's recipe leaves it out

    def package_id(self):
        if self.info.options.header_only:
            self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCH"):
            toolchain.cache_variables[f"SKEIN_{part}"] = False
        toolchain.cache_variables["SKEIN_COMPILED"] = not self.options.header_only
        toolchain.cache_variables["SKEIN_MARCH"] = str(self.options.march)
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        if not self.options.header_only:
            cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "share", "doc"))

    def package_info(self):
        self.cpp_info.bindirs = []
        if self.options.header_only:
            self.cpp_info.libdirs = []
        else:
            self.cpp_info.libs = ["skein_compiled"]
        self.cpp_info.set_property("cmake_find_mode", "none")                # its own package, which knows the components
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "skein")]
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
