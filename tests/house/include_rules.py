#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may know whom: greps the includes of every header and fails on an edge that docs/design.md does not list. Bodies that skein::compiled
holds stand in a file .ipp beside their header, which alone includes it, in its last lines and where SKEIN_COMPILED is 0; so does one file of
src/.

Usage: include_rules.py <repository> | --self-test"""
import pathlib
import re
import sys
import tempfile

# A folder includes itself, fwd.hpp, and what its line names.
HOUSES = {
    "core": "",
    "draw": "core",
    "plan": "core draw",
    "device": "core",
    "tensor": "core device",
    "comm": "core plan device",
    "ops": "core plan device tensor",
    "autodiff": "core device tensor ops",
    "nn": "core plan device tensor ops autodiff",
    "optim": "core plan device tensor ops autodiff nn",
    "data": "core plan device tensor",
    "parallel": "core plan device tensor comm ops autodiff nn optim data",
    "train": "core draw plan device tensor comm ops autodiff nn optim data parallel",
}
HOUSES = {house: set(known.split()) for house, known in HOUSES.items()}

# Headers beside the houses: which back ends each may bring in. Every other include of a house is theirs.
ROOTS = {
    "skein.hpp": "",
    "parallel.hpp": "",
    "mpi.hpp": "mpi",
    "cuda.hpp": "cuda",
    "gloo.hpp": "gloo",
    "nccl.hpp": "cuda nccl",
    "xtensor.hpp": "",
    "simulate.hpp": "",
}
# What trainings are only tried with has an umbrella of its own: no other brings it in.
TRIALS = {("comm", "sim"), ("parallel", "simulate")}
BODIES = '#if !%s\n#include "%s.ipp"\n#endif'
BACK_ENDS = {"mpi", "gloo", "cuda", "nccl"}
KNOWS = {"nccl": {"cuda"}}                                   # nccl.h itself includes the CUDA runtime

# A third party, by the beginning of its includes, and the doors behind which it lives.
DOORS = [
    (r"fmt/", ["tensor/format.hpp"]),
    (r"(cuda|cublas|cudnn|cusolver|cusparse|curand|cufft|nvtx|nvToolsExt|cooperative_groups)[\w/]*(\.h|\.hpp|\.cuh)?$",
     ["*/cuda/*", "comm/nccl/*"]),
    (r"(thrust|cub|cuda|nvtx3)/", ["*/cuda/*"]),
    (r"nccl\.h", ["comm/nccl/*"]),
    (r"mpi\.h|boost/(mpi|serialization/|archive/)", ["comm/mpi/*"]),
    (r"gloo/", ["comm/gloo/*"]),
    (r"(oneapi/dnnl/)?dnnl", ["ops/cpu/*"]),
    (r"xsimd/", ["ops/cpu/*", "tensor/*"]),
    (r"(cblas|lapacke|lapack)\.h|mkl", ["ops/cpu/*"]),
    (r"png\.h|turbojpeg\.h", ["data/image_codecs.hpp"]),
    (r"hdf5\.h", ["data/hdf5_file.hpp"]),
    (r"zlib\.h|zstd\.h", ["data/*", "tensor/npz.hpp"]),
    (r"nlohmann/", ["train/*"]),
    (r"xtensor/|xtl/", ["xtensor.hpp"]),
]
SYSTEM = re.compile(r"[a-z_0-9]+$|c?(assert|ctype|errno|float|inttypes|limits|math|stddef|stdint|stdio|stdlib|string|time)\.h$|"
                    r"(sched|unistd|fcntl|pthread|signal|dirent|dlfcn|poll|netdb|ifaddrs|immintrin|arm_neon)\.h$|(sys|linux|net|netinet|arpa)/\w+\.h$")
REFUSED = {
    "format": "gcc 12 has none: use text() of core/text.hpp",
    "mdspan": "gcc 12 has none",
    "source_location": "clang 14 has none: use SourceLocation of core/error.hpp",
    "dnnl.hpp": "it crashes nvcc 13.0: use the C header oneapi/dnnl/dnnl.h",
    "oneapi/dnnl/dnnl.hpp": "it crashes nvcc 13.0: use the C header oneapi/dnnl/dnnl.h",
    "omp.h": "the library's threads are core/workers.hpp",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)


def behind(door, path):
    if door == "*/cuda/*":
        return "cuda" in pathlib.PurePosixPath(path).parts[:-1]
    return path.startswith(door[:-1]) if door.endswith("*") else path == door


def back_end_of(path):
    found = BACK_ENDS & set(pathlib.PurePosixPath(path).parts[:-1])
    return found.pop() if found else None


def check_own(root, path, target):
    """An include of a header of this library: path and target are relative to include/skein."""
    if not (root / target).is_file():
        return f"includes {target}, which does not exist"
    if target.endswith(".ipp"):
        header = target.removesuffix(".ipp") + ".hpp"
        if path != header or not (root / path).read_text().rstrip().endswith(BODIES % ("SKEIN_COMPILED_MPI" if target.startswith("comm/mpi/") else "SKEIN_COMPILED", pathlib.PurePosixPath(target).stem)):
            return f"includes {target}: {header} alone does, in its last lines and where SKEIN_COMPILED is 0"
        return None
    source_parts, target_parts = pathlib.PurePosixPath(path).parts, pathlib.PurePosixPath(target).parts
    brought = back_end_of(target)
    if len(target_parts) == 1:
        if target == "fwd.hpp" or (len(source_parts) == 1 and target == "skein.hpp") or (path, target) == ("nccl.hpp", "cuda.hpp"):
            return None
        return f"includes {target}: nothing inside includes what is beside the houses"
    if len(source_parts) == 1:
        if path == "fwd.hpp":
            return None if target == "core/config.hpp" else f"fwd.hpp includes {target}: it takes core/config.hpp only"
        if path not in ROOTS:
            return "is beside the houses, but not in ROOTS of tests/house/include_rules.py"
        if brought and brought not in ROOTS[path].split():
            return f"brings in the back end {brought} ({target}): that is included by its own name"
        if target_parts[:2] in TRIALS and path != "simulate.hpp":
            return f"includes {target}: what only tries a training comes with simulate.hpp"
        return None
    house, other = source_parts[0], target_parts[0]
    if house not in HOUSES:
        return f"lies in the folder {house}, which is not in HOUSES of tests/house/include_rules.py"
    if brought and not any(brought == part or brought in KNOWS.get(part, ()) for part in source_parts[:-1]):
        return f"includes {target}: what is in {brought}/ is known to {brought}/ folders only"
    if other != house and other not in HOUSES[house]:
        return f"includes {target}: {house}/ may know {', '.join(sorted(HOUSES[house])) or 'nothing else'}"
    return None


def check_bodies(root):
    """Each file .ipp belongs to the header of its name, and is compiled by one file of src/."""
    compiled = [name for file in sorted((root.parent.parent / "src").glob("*.cpp")) for name in re.findall(r"^#include <skein/(.+\.ipp)>", file.read_text(), re.M)]
    for file in sorted(root.rglob("*.ipp")):
        path, header = file.relative_to(root).as_posix(), file.with_suffix(".hpp")
        if not header.is_file() or f'#include "{file.name}"' not in header.read_text():
            yield f"include/skein/{path} is included by no header: it has the bodies of the header of its name"
        elif compiled.count(path) != 1:
            yield f"include/skein/{path} is compiled by {compiled.count(path)} files of src/, not by one"


def check_third_party(path, name):
    path = path.replace(".ipp", ".hpp")                      # bodies may what their header may
    if name in REFUSED:
        return f"includes <{name}>: {REFUSED[name]}"
    if path == "fwd.hpp":
        return f"includes <{name}>: fwd.hpp takes no other header"
    if name.startswith("skein/"):
        return f"includes <{name}>: inside the library includes are relative"
    if SYSTEM.match(name):
        return None
    for begin, doors in DOORS:
        if re.match(begin, name):
            return None if any(behind(door, path) for door in doors) else f"includes <{name}>, which lives in {' '.join(doors)}"
    return f"includes <{name}>, which has no door in tests/house/include_rules.py"


def check(root):
    """The faults of all headers below root (include/skein), as sentences."""
    faults = []
    for file in sorted([*root.rglob("*.hpp"), *root.rglob("*.ipp"), *root.rglob("*.cuh"), *root.rglob("*.h")]):
        path = file.relative_to(root).as_posix()
        for own, third in INCLUDE.findall(file.read_text()):
            if own:
                target = (file.parent / own).resolve()
                if not target.is_relative_to(root.resolve()):
                    fault = f'includes "{own}", which is outside the library'
                else:
                    fault = check_own(root, path, target.relative_to(root.resolve()).as_posix())
            else:
                fault = check_third_party(path, third)
            if fault:
                faults.append(f"include/skein/{path} {fault}")
    return faults + list(check_bodies(root))


def self_test():
    """Right headers pass; each planted wrong include is found, by its own sentence."""
    good = {
        "fwd.hpp": '#include "core/config.hpp"', "core/config.hpp": "", "core/error.hpp": "#include <sched.h>", "tensor/format.hpp": "#include <fmt/format.h>",
        "comm/concepts.hpp": '#include "../core/error.hpp"', "comm/mpi/comm.hpp": '#include <boost/mpi.hpp>\n#include "../concepts.hpp"',
        "tensor/npz.hpp": "#include <zlib.h>\n#include <vector>", "ops/cpu/gemm.hpp": "#include <oneapi/dnnl/dnnl.h>",
        "ops/cuda/gemm.hpp": "#include <cublasLt.h>\n#include <cuda_runtime.h>\n#include <thrust/sort.h>",
        "nn/layer.hpp": '#include "../fwd.hpp"', "skein.hpp": '#include "comm/concepts.hpp"\n#include "nn/layer.hpp"',
        "device/cuda/stream.hpp": "#include <cuda_runtime_api.h>",
        "comm/nccl/comm.hpp": '#include <nccl.h>\n#include "../../device/cuda/stream.hpp"',
        "mpi.hpp": '#include "comm/mpi/comm.hpp"', "xtensor.hpp": "#include <xtensor/xarray.hpp>",
        "draw/svg.hpp": "#include <string>\n" + BODIES % ("SKEIN_COMPILED", "svg"), "draw/svg.ipp": '#include "svg.hpp"', "draw/axis.hpp": "", "../../src/core.cpp": "#include <skein/draw/svg.ipp>",
        "comm/sim/delayed.hpp": "", "simulate.hpp": '#include "comm/sim/delayed.hpp"', "parallel.hpp": '#include "comm/concepts.hpp"',
    }
    planted = [
        ("nn/layer.hpp", '#include "../comm/concepts.hpp"', "nn/ may know"),
        ("core/error.hpp", '#include "../nn/layer.hpp"', "core/ may know nothing else"),
        ("nn/layer.hpp", '#include "../skein.hpp"', "nothing inside includes"),
        ("nn/layer.hpp", '#include "../core/missing.hpp"', "does not exist"),
        ("nn/layer.hpp", '#  include <cuda_runtime.h>', "lives in */cuda/*"),
        ("nn/layer.hpp", "#include <thrust/sort.h>", "lives in */cuda/*"),
        ("comm/concepts.hpp", "#include <mpi.h>", "lives in comm/mpi/*"),
        ("comm/mpi/comm.hpp", "#include <nccl.h>", "lives in comm/nccl/*"),
        ("comm/mpi/comm.hpp", '#include "../../device/cuda/stream.hpp"', "known to cuda/ folders only"),
        ("comm/concepts.hpp", '#include "mpi/comm.hpp"', "known to mpi/ folders only"),
        ("skein.hpp", '#include "comm/mpi/comm.hpp"', "brings in the back end mpi"),
        ("nn/layer.hpp", "#include <oneapi/dnnl/dnnl.h>", "lives in ops/cpu/*"),
        ("ops/cpu/gemm.hpp", "#include <oneapi/dnnl/dnnl.hpp>", "crashes nvcc"),
        ("nn/layer.hpp", "#include <xsimd/xsimd.hpp>", "lives in ops/cpu/* tensor/*"),
        ("tensor/view.hpp", "#include <zlib.h>", "lives in data/* tensor/npz.hpp"),
        ("nn/layer.hpp", "#include <nlohmann/json.hpp>", "lives in train/*"),
        ("core/error.hpp", "#include <fmt/format.h>", "lives in tensor/format.hpp"),
        ("tensor/npz.hpp", "#include <xtensor/xarray.hpp>", "lives in xtensor.hpp"),
        ("core/error.hpp", "#include <format>", "use text()"),
        ("core/error.hpp", "#include <boost/json.hpp>", "has no door"),
        ("core/error.hpp", "#include <skein/fwd.hpp>", "includes are relative"),
        ("fwd.hpp", "#include <vector>", "takes no other header"),
        ("cellar/wine.hpp", '#include "../core/error.hpp"', "not in HOUSES"),
        ("parallel.hpp", '#include "comm/sim/delayed.hpp"', "comes with simulate.hpp"),
        ("extra.hpp", '#include "core/error.hpp"', "not in ROOTS"),
        ("draw/svg.hpp", '#include "svg.ipp"', "where SKEIN_COMPILED is 0"),
        ("draw/axis.hpp", BODIES % ("SKEIN_COMPILED", "svg"), "draw/svg.hpp alone does"),
        ("draw/svg.hpp", BODIES % ("SKEIN_COMPILED_MPI", "svg"), "where SKEIN_COMPILED is 0"),
        ("draw/axis.ipp", "", "is included by no header"),
        ("../../src/core.cpp", "", "is compiled by 0 files"),
        ("../../src/data.cpp", "#include <skein/draw/svg.ipp>", "is compiled by 2 files"),
    ]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "include/skein"

        def write(path, text):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text + "\n")

        for path, text in good.items():
            write(path, text)
        wrong += [f"a right tree is refused: {fault}" for fault in check(root)]
        for path, text, sentence in planted:
            write(path, text)
            found = check(root)
            if len(found) != 1 or sentence not in found[0]:
                wrong.append(f"planted {text} in {path}, wanted '{sentence}', found {found}")
            write(path, good[path]) if path in good else (root / path).unlink()
    return wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
    else:
        faults = check(pathlib.Path(sys.argv[1]) / "include" / "skein")
    print("\n".join(faults) if faults else "no wrong include")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
