#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of the cookbook has at most 1.3 times the lines of the same program in Keras or PyTorch (bench/peer/first_hour). Counted are
lines of code as the formatters leave them (clang-format, black): includes and imports, no comments, no blank lines. What the guide shows
as a thing of the user's own (a layer, a loss, an exchange) has at most so many lines within its type.

Usage: program_lines.py SOURCE_DIR [ignored] | --self-test"""
import pathlib
import re
import sys

MOST = 1.3
PAIRS = {  # programs in examples: the same in bench/peer/first_hour
    "cookbook/table_regression.cpp": "table_regression.py",
    "tutorial/10_four_processes.cpp": "images_on_two_ranks.py",
    "cookbook/own_layer_loss_metric.cpp": "own_layer_loss_metric.py",
    "cookbook/two_inputs.cpp": "two_inputs.py",
    "cookbook/loop_by_hand.cpp": "loop_by_hand.py",
    "cookbook/transfer_learning.cpp": "transfer_learning.py",
    "cookbook/inference_1_train.cpp cookbook/inference_2_use.cpp": "inference_1_train.py inference_2_use.py",
}
OWN = {  # file, region of it that the guide quotes: the most lines of code, without those that open and close the type
    ("examples/04_own_layer.cpp", "layer"): 8,
    ("tests/support/own_losses.hpp", "focal"): 8,
    ("tests/guide/train_test.cpp", "own_metric"): 8,
    ("tests/support/own_optimizers.hpp", "own_optimizer"): 12,
    ("tests/support/own_optimizers.hpp", "own_transform"): 15,
    ("include/skein/optim/transform/lars.hpp", "tensor"): 15,
    ("tests/support/own_exchange.hpp", "own_exchange"): 40,
    ("tests/guide/data_test.cpp", "from_disk"): 20,
    ("tests/support/own_layers.hpp", "embedding"): 12,
}


def code_lines(text, language):
    """Lines with code. What writes the data of an example (between [quote write] and [end]) stands for a file that a user has."""
    if language == ".py":
        text = re.sub(r'^\s*""".*?"""\s*$', "", text, flags=re.M | re.S)
        return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    text = re.sub(r"// \[quote write\].*?// \[end\]", "", text, flags=re.S)
    text = re.sub(r"^ *write_\w+\(\);\n", "", text, flags=re.M)
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("//")]


def own_lines(text, region):
    """Lines of code of a region between [quote NAME] and [end], without those that open and close its type; None: there is no such region."""
    found = re.search(r"// \[quote " + re.escape(region) + r"\]\n(.*?)// \[end\]", text, flags=re.S)
    if not found:
        return None
    lines = [line.strip() for line in found[1].splitlines() if line.strip() and not line.strip().startswith("//")]
    return len([line for line in lines if not re.match(r"(template <[^>]*> )?struct .*\{$|\};$|using namespace ", line)])


def check_own(root):
    faults, rows = [], []
    for (file, region), most in OWN.items():
        path = root / file
        count = own_lines(path.read_text(), region) if path.exists() else None
        if count is None:
            faults.append(f"{file}: there is no region [quote {region}]")
            continue
        rows.append(f"{file}, {region}: {count} lines, at most {most}")
        if count > most:
            faults.append(f"{file}: [quote {region}] has {count} lines of code, at most {most}")
    return faults, rows


def check(root):
    faults, rows = check_own(root)
    for ours, theirs in PAIRS.items():
        programs, peers = [root / "examples" / name for name in ours.split()], [root / "bench/peer/first_hour" / name for name in theirs.split()]
        absent = [path for path in programs + peers if not path.exists()]
        if absent:
            faults.append(f"{absent[0].relative_to(root)} is not there")
            continue
        a, b = (sum(len(code_lines(p.read_text(), p.suffix)) for p in paths) for paths in (programs, peers))
        name = re.sub(r"\w+/", "", ours).replace(".cpp", "")
        rows.append(f"{name:34} {a:3} lines, in Python {b:3}: {a / b:.2f} times")
        if a > MOST * b:
            faults.append(f"{name}: {a / b:.2f} times the lines of code of {theirs}, at most {MOST}")
    return faults, rows


def self_test():
    faults = []
    cpp = "// licence\n#include <a>\n\n// [quote write]\nvoid write_it() {}\n// [end]\nint main() {\n  write_it();\n  // why\n  f();  // what\n}\n"
    if len(code_lines(cpp, ".cpp")) != 4:
        faults.append(f"C++: {code_lines(cpp, '.cpp')}")
    python = '# licence\n"""Two\nlines."""\nimport a\n\n\ndef f():\n    """One."""\n    return 1  # what\n'
    if len(code_lines(python, ".py")) != 3:
        faults.append(f"Python: {code_lines(python, '.py')}")
    own = "// [quote it]\n/// What it is.\ntemplate <int N> struct It {\n  int a = 1;  // why\n\n  void f() {\n  }\n};\n// [end]\n"
    if own_lines(own, "it") != 3 or own_lines(own, "other") is not None:
        faults.append(f"a region: {own_lines(own, 'it')}, {own_lines(own, 'other')}")
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults, rows = self_test(), []
    else:
        faults, rows = check(pathlib.Path(sys.argv[1]))
    print("\n".join(rows + faults) if rows or faults else "lines of code are counted")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
