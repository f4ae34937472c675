# SPDX-License-Identifier: Apache-2.0
"""What benches in Python share: arguments, flags of the library, and lines of a report with the same keys as report.hpp's."""
import argparse
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def file_to_add_to(path):
    """The path, tried before anything is measured for it; a sentence of argparse where it cannot be written."""
    try:
        open(path, "a").close()
    except OSError as e:
        raise argparse.ArgumentTypeError(f"{path} cannot be written: {e.strerror}. Name a file in a folder that exists and that you may write to")
    return path


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE", type=file_to_add_to)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    return parser


def library(mpi=False):
    """(flags for compiling, flags for linking) of skein with what is installed here; scripts/setup bench installs all of it."""
    compiling, linking = ["-I" + str(ROOT / "include")], ["-pthread"]

    def there(header):
        return subprocess.run(["g++", "-x", "c++", "-fsyntax-only", "-"], input=f"#include <{header}>\n", text=True,
                              stderr=subprocess.DEVNULL).returncode == 0
    for header, definition, flag in (("xsimd/xsimd.hpp", "XSIMD", None), ("oneapi/dnnl/dnnl.h", "ONEDNN", "-ldnnl"),
                                     ("zlib.h", "ZLIB", "-lz"), ("nlohmann/json.hpp", "JSON", None)):
        if there(header):
            compiling.append(f"-DSKEIN_WITH_{definition}=1")
            linking += [flag] if flag else []
    if mpi:
        for kind, flags in (("compile", compiling), ("link", linking)):
            flags += subprocess.run(["mpicxx", f"--showme:{kind}"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        linking += ["-lboost_mpi", "-lboost_serialization"]
    return compiling, linking


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


class Report:
    def __init__(self, bench, options):
        self.bench, self.json, self.quick, self.lines, self.before = bench, options.json, options.quick, [], os.getloadavg()[0]
        self.note = ""
        print(f"this machine: load {self.before:.2f}" + ("; quick" if options.quick else ""))

    def add(self, metric, ours, unit, must=None, hope=None, note="", at_least=None):
        """One figure that must not be above a bound, or not below `at_least`."""
        goals = {name: bound for name, bound in (("must", must), ("hope", hope)) if bound is not None}
        said = "".join(f", {name} <= {bound:g} {'yes' if ours <= bound else 'NO'}" for name, bound in goals.items())
        holds = ours <= must if must is not None else None
        if at_least is not None:
            must, holds = at_least, ours >= at_least
            said += f", must >= {must:g} {'yes' if holds else 'NO'}"
        print(f"  {metric}: {number(ours)} {unit}{said}" + (f"  [{note}]" if note else ""), flush=True)
        self.lines.append({"bench": self.bench, "metric": metric, "ours": ours, "peer": None, "peer_name": None, "unit": unit,
                           "ratio": None, "low": None, "high": None, "floor": None, "of_floor": None, "must": must, "hope": hope,
                           "holds": holds, "threads": None, "isa": None, "note": note})
        return holds is not False

    def compare(self, metric, ours, peer, unit, ratio, peer_name, must=None, note="", at_least=None):
        """One figure beside a peer's; `ratio` is (median, low, high) of ours over the peer's, and `must` (or `at_least`) bounds the
        whole interval."""
        holds = ratio[2] <= must if must is not None else ratio[1] >= at_least if at_least is not None else None
        sign, must = (">=", at_least) if must is None else ("<=", must)
        said = "" if holds is None else f", must {sign} {must:g} {'yes' if holds else 'NO'}"
        print(f"  {metric}: {number(ours)} {unit}, {peer_name} {number(peer)} {unit}: {ratio[0]:.3g} ({ratio[1]:.3g} to {ratio[2]:.3g})"
              + said + (f"  [{note}]" if note else ""), flush=True)
        self.lines.append({"bench": self.bench, "metric": metric, "ours": ours, "peer": peer, "peer_name": peer_name, "unit": unit,
                           "ratio": ratio[0], "low": ratio[1], "high": ratio[2], "floor": None, "of_floor": None, "must": must,
                           "hope": None, "holds": holds, "threads": None, "isa": None, "note": note})

    def finish(self):
        after = os.getloadavg()[0]
        print(f"load {self.before:.2f} before, {after:.2f} after")
        if self.json:
            with open(self.json, "a") as out:
                for line in self.lines:
                    line["note"] += ("; " if line["note"] else "") + ("quick; " if self.quick else "") + f"load {self.before:.2f} to {after:.2f}"
                    line["note"] += ("; " if self.note else "") + self.note
                    out.write(json.dumps(line) + "\n")
