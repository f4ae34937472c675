#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Merges what benches wrote with --json into the tables of bench/README.md.

Usage: report.py RESULTS.jsonl [bench/README.md]   (without a README: prints the tables)

The table of bench NAME stands between `<!-- bench NAME -->` and `<!-- end NAME -->`; a bench that has none yet gets a section at
the end. Text between the tables is not touched, and a bench that was not run keeps its table."""
import json
import pathlib
import re
import sys

COLUMNS = ("what", "ours", "peer", "ours / peer", "95 %", "of floor", "speed-up", "twice", "must", "hope", "holds")


def number(value):
    """Three significant digits, without an exponent where it can be avoided."""
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return value
    if float(value).is_integer() and abs(value) < 1e7:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def goal(value):
    """A bound as the bench has it: rounded it would be another one (1.005)."""
    return number(value) if value is None or isinstance(value, str) or float(value).is_integer() else f"{value:g}"


def row(line):
    unit = f" {line['unit']}" if line.get("unit") else ""
    what = str(line.get("metric", ""))
    if line.get("threads"):
        what += f", {line['threads']} thread{'s' if line['threads'] != 1 else ''}"
    if line.get("note"):
        what += f" ({line['note']})"
    low, high = number(line.get("low")), number(line.get("high"))
    holds = line.get("holds")
    return (what, number(line.get("ours")) + (unit if line.get("ours") is not None else ""),
            f"{number(line.get('peer'))}{unit} {line.get('peer_name') or ''}".strip() if line.get("peer") is not None else "",
            number(line.get("ratio")), f"{low} - {high}" if low and high else "", number(line.get("of_floor")),
            number(line.get("speedup")), number(line.get("twice")),
            goal(line.get("must")), goal(line.get("hope")), "" if holds is None else "yes" if holds else "no")


def table(lines):
    """The lines of one bench as a Markdown table; columns that no line fills are left out."""
    rows = [row(line) for line in lines]
    used = [i for i in range(len(COLUMNS)) if any(cells[i] for cells in rows)]
    text = ["| " + " | ".join(COLUMNS[i] for i in used) + " |", "|" + "---|" * len(used)]
    text += ["| " + " | ".join(cells[i].replace("|", "/") for i in used) + " |" for cells in rows]
    machines = sorted({str(line["isa"]) for line in lines if line.get("isa")})
    if machines:
        text += ["", "Instruction set: " + ", ".join(machines) + "."]
    return "\n".join(text)


def merge(readme, results):
    """README's text with the tables of these results in it."""
    benches = {}
    for line in results:
        benches.setdefault(line["bench"], []).append(line)
    for name, lines in benches.items():
        block = f"<!-- bench {name} -->\n{table(lines)}\n<!-- end {name} -->"
        place = re.compile(rf"<!-- bench {re.escape(name)} -->.*?<!-- end {re.escape(name)} -->", re.S)
        if place.search(readme):
            readme = place.sub(lambda _: block, readme)
        else:
            readme = readme.rstrip("\n") + f"\n\n## {name}\n\n{block}\n"
    return readme


def self_test():
    old = {"bench": "lenet", "metric": "step", "ours": 2.0, "unit": "ms", "holds": True, "must": 0.3, "threads": 1}
    new = dict(old, ours=1.5, peer=13.9, peer_name="PyTorch", ratio=0.108, low=0.105, high=0.11)
    text = merge("# Benches\n\nWords.\n", [old, dict(old, bench="mlp")])
    text = merge(text + "\nMore words.\n", [new, dict(new, metric="against itself", must=1.005, hope="0.55 or 1.2 f")])
    wanted = ["# Benches\n\nWords.", "## lenet", "| step, 1 thread | 1.5 ms | 13.9 ms PyTorch | 0.108 | 0.105 - 0.11 |", "## mlp",
              "| 1.005 | 0.55 or 1.2 f | yes |",
              "| step, 1 thread | 2 ms |", "\nMore words.\n"]
    return [f"missing: {words}" for words in wanted if words not in text] + (["two tables"] if text.count("bench lenet") != 1 else [])


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "the report merges")
        return 1 if faults else 0
    results = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if line.strip()]
    if len(sys.argv) > 2:
        path = pathlib.Path(sys.argv[2])
        path.write_text(merge(path.read_text() if path.exists() else "# Benches\n", results))
    else:
        print(merge("", results).strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
