#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of options in docs/ say what the headers say: each field in its order of declaration, with type, default and sentence.

A table has a line `<!-- options: PATH#STRUCT -->` before it, and a row for each field of that struct. The sentence of a field is
its `///<` behind it, or the `///` lines before it.

A table of layers has a line `<!-- layers: FOLDER -->` before it: each layer with options of the headers in that folder stands in one
row, whose second cell names those that the layer declares (`using options = ...`), where it gives values with their defaults. A layer
that takes options and declares none is a fault.

A table of environment variables has a line `<!-- environment -->` before it: each SKEIN_ variable that a header reads has a row there.

Usage: option_tables.py <repository> | --update <repository> | --self-test"""
import pathlib
import re
import sys
import tempfile

TABLE = re.compile(r"^<!-- options: (?P<path>[^#\s]+)#(?P<struct>\w+) -->\n(?P<rows>(?:\|.*\n)*)", re.M)
FIELD = re.compile(r"^  (?P<type>[\w:<>, ]+?) (?P<name>\w+)(?: = (?P<value>[^;]+)|\{(?P<braced>[^;]*)\});(?:\s*///< (?P<text>.*))?$")
HEAD = "| option | type | default | meaning |\n|---|---|---|---|\n"


LAYERS = re.compile(r"^<!-- layers: (?P<folder>\S+) -->\n(?P<rows>(?:\|.*\n)*)", re.M)
DECLARED = re.compile(r"using options\s*=\s*(?:detail::)?LayerOptions<List<(?P<known>.*?)>,\s*Options\.\.\.>;", re.S)

ENVIRONMENT = re.compile(r"^<!-- environment -->\n(?P<rows>(?:\|.*\n)*)", re.M)
READ = re.compile(r"\b(?:environment(?:_\w+)?|getenv)\(\s*\"(SKEIN_\w+)\"")


def parts(text):
    """What commas outside of brackets separate."""
    found, depth = [""], 0
    for c in text:
        depth += (c == "<") - (c == ">")
        found[-1:] = [found[-1], ""] if c == "," and depth == 0 else [found[-1] + c]
    return [" ".join(part.split()) for part in found if part.strip()]


def declared_options(folder):
    """The options that each layer of a folder declares. Raises ValueError with the sentence."""
    layers, bases_of_others = {}, set()
    for header in sorted(set(folder.glob("*.hpp")) - {folder / "options.hpp"}):
        text = header.read_text()
        structs = [(match.start(), match["name"]) for match in re.finditer(r"\bstruct (?P<name>\w+)[^;{]*\{", text)]
        here = {}
        for match in DECLARED.finditer(text):
            known = []
            for option in parts(match["known"]):
                wrapped = re.fullmatch(r"(?:detail::)?(?:Required|OneOf)<(.*)>", option)
                known += parts(wrapped[1]) if wrapped else [option]
            here[[name for start, name in structs if start < match.start()][-1]] = known
        for match in re.finditer(r"class\.\.\. Options> struct (?P<name>\w+)\s*(?P<bases>[^;{]*)\{", text):
            name, bases = match["name"], re.findall(r"\w+", match["bases"])
            inherited = [base for base in bases if base in here]
            if inherited:
                here[name] = here[inherited[0]]
                bases_of_others.update(inherited)
            if name not in here:
                raise ValueError(f"of layers: {header.name}: {name} takes options and does not say which: using options = "
                                 "detail::LayerOptions<List<...>, Options...>;")
        layers.update(here)
    return {name: known for name, known in layers.items() if name not in bases_of_others}


def layer_faults(root, folder, rows):
    """What the rows of a table of layers say otherwise than the headers."""
    try:
        layers, faults = declared_options(root / folder), []
    except ValueError as e:
        return [str(e)]
    shown = {}
    for row in rows.splitlines()[2:]:
        first, second = row.strip("|\n").split("|")[:2]
        for layer in re.findall(r"`(\w+)<([^`]*)>`", first):
            shown.setdefault(layer[0], (parts(layer[1])[1:], re.findall(r"`([A-Z]\w*(?:<[^`]*>)?)`", second.split(":")[0])))
    for layer, known in layers.items():
        if layer not in shown:
            faults.append(f"of layers has no row for {layer}, which has options")
            continue
        in_name, listed = shown[layer]
        names = [option.split("<")[0] for option in in_name + listed]
        if sorted(names) != sorted(option.split("<")[0] for option in known):
            faults.append(f"of layers: {layer} declares {', '.join(known)}; its row names {', '.join(in_name + listed) or 'none'}")
        faults += [f"of layers: {layer} declares {default}; its row names {option}" for option in listed for default in known
                   if option.split("<")[0] == default.split("<")[0] and re.search(r"<.*\d", option) and option != default]
    return faults


def variables_read(root):
    return {name for header in (root / "include").rglob("*.?pp") for name in READ.findall(header.read_text())}


def environment_faults(root, rows):
    """The variables that headers read and that have no row."""
    shown = {name for row in rows.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.strip("|").split("|")[0])}
    return [f"of environment variables has no row for {name}, which a header reads" for name in sorted(variables_read(root) - shown)]


def fields(text, struct):
    """(name, type, default, sentence) of each field. Raises ValueError with the sentence."""
    found = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.M | re.S)
    if not found:
        raise ValueError(f"names {struct}, which is no struct of that header")
    rows, before = [], ""
    for line in found.group(1).splitlines():
        note = re.fullmatch(r"\s*///<? (.*)", line)
        field = FIELD.match(line)
        if "detail::refused::" in line:  # a name that other libraries use: it takes no value
            continue
        if note and "///<" in line and rows:
            rows[-1] = (*rows[-1][:3], (rows[-1][3] + " " + note.group(1)).strip())
        elif note:
            before = (before + " " + note.group(1)).strip()
        elif field:
            value = field["value"] or field["braced"] or ""
            rows.append((field["name"], field["type"], value.split("::")[-1], field["text"] or before))
            before = ""
        elif line.strip():
            raise ValueError(f"{struct}: '{line.strip()}' is no field `type name = default;  ///< sentence` on one line")
    if len(rows) > 19:
        raise ValueError(f"of {struct} has {len(rows)} rows: nobody remembers the order of so many, so put some into a struct of their own")
    for name, _, _, sentence in rows:
        if not sentence:
            raise ValueError(f"{struct}: .{name} has no sentence: put `///< ...` behind it")
    return rows


def table(root, path, struct):
    if not (root / path).is_file():
        raise ValueError(f"names {path}, which is no file")
    rows = fields((root / path).read_text(), struct)
    cell = lambda code: f"`{code}`" if code else ""
    return HEAD + "".join(f"| `.{name}` | `{kind}` | {cell(value)} | {sentence} |\n" for name, kind, value, sentence in rows)


def check(root, update=False):
    faults, tables, names_variables = [], 0, False
    for document in sorted((root / "docs").rglob("*.md")):
        text = document.read_text()

        def one(match):
            nonlocal tables
            tables += 1
            try:
                right = table(root, match["path"], match["struct"])
            except ValueError as e:
                faults.append(f"{document.relative_to(root)}: a table {e}")
                return match.group(0)
            if right != match["rows"] and not update:
                faults.append(f"{document.relative_to(root)}: the table of {match['struct']} differs from {match['path']}: run "
                              "tests/house/option_tables.py --update .")
            return match.group(0)[:len(match.group(0)) - len(match["rows"])] + right

        changed = TABLE.sub(one, text)
        for match in LAYERS.finditer(text):
            faults += [f"{document.relative_to(root)}: the table {fault}" for fault in layer_faults(root, match["folder"], match["rows"])]
        for match in ENVIRONMENT.finditer(text):
            names_variables = True
            faults += [f"{document.relative_to(root)}: the table {fault}" for fault in environment_faults(root, match["rows"])]
        if update and changed != text:
            document.write_text(changed)
    if not tables:
        faults.append("no document has a table of options")
    if variables_read(root) and not names_variables:
        faults.append("no document has a table of the environment variables that headers read")
    return faults


def self_test():
    wrong = []
    header = ("struct O {\n  int epochs = 1;  ///< passes\n  std::vector<A, B> all{};  ///< of them\n  /// chosen\n  data::P p = data::P::one;\n"
              "};\n")
    rows = HEAD + "| `.epochs` | `int` | `1` | passes |\n| `.all` | `std::vector<A, B>` |  | of them |\n| `.p` | `data::P` | `one` | chosen |\n"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        page = root / "docs/a.md"

        def found(in_header, in_page):
            (root / "o.hpp").write_text(in_header)
            page.write_text(in_page)
            return check(root)

        right = "<!-- options: o.hpp#O -->\n" + rows
        if found(header, right):
            wrong.append(f"a right table is refused: {found(header, right)}")
        swapped = header.replace("  int epochs = 1;  ///< passes\n", "").replace("\n};", "\n  int epochs = 1;  ///< passes\n};")
        for in_header, in_page, sentence in [(header.replace("= 1", "= 2"), right, "differs"), (swapped, right, "differs"),
                                             (header.replace("epochs", "epoch"), right, "differs"), (header, right.replace("#O", "#X"), "no struct"),
                                             (header.replace("  ///< passes", ""), right, "no sentence"), (header, "text\n", "no document"),
                                             (header.replace("int epochs = 1;", "int a, b;"), right, "no field"),
                                             (header.replace("\n};", "".join(f"\n  int a{i} = 0;  ///< a" for i in range(17)) + "\n};"), right,
                                              "20 rows")]:
            faults = found(in_header, in_page)
            if len(faults) != 1 or sentence not in faults[0]:
                wrong.append(f"wanted '{sentence}', found {faults}")
        layer = ("template <class... Options> struct Base {\n  using options = LayerOptions<List<Required<Kernel<1>>, Stride<2>, OneOf<A, B>>, "
                 "Options...>;\n};\ntemplate <int N, class... Options> struct Layer : detail::Base<Options...> {};\n")
        line = "| `Layer<N, Kernel<K>>` | `Stride<2>`, `A` or `B`: text of `Others` |\n"
        layer_table = right + "<!-- layers: layers -->\n| layers | options |\n|---|---|\n"
        (root / "layers").mkdir()
        for in_header, in_page, sentence in [(layer, line, ""), (layer.replace("Stride<2>", "Stride<2>, NoBias"), line, "declares"),
                                             (layer.replace("Stride<2>", "Stride<1>"), line, "row names Stride<2>"), (layer, "", "no row"),
                                             (layer, line.replace(", `A`", ", `A`, `Padding`"), "row names"),
                                             (layer.replace("using options", "using others"), line, "does not say which")]:
            (root / "layers/layer.hpp").write_text(in_header)
            faults = found(header, layer_table + in_page)
            if len(faults) != (1 if sentence else 0) or sentence not in "".join(faults):
                wrong.append(f"of a table of layers: wanted '{sentence}', found {faults}")
        (root / "include").mkdir()
        variables = right + "<!-- environment -->\n| variable | read by |\n|---|---|\n| `SKEIN_A`, `B` | text of `SKEIN_B` |\n"
        for in_header, sentence in [('environment_switch("SKEIN_A", false)', ""), ('std::getenv("SKEIN_B")', "SKEIN_B"),
                                    ('environment_number(\n  "SKEIN_C", 1)', "SKEIN_C"), ('getenv("HOME")', "")]:
            (root / "include/environment.ipp").write_text(in_header)
            faults = found(header, variables)
            if len(faults) != (1 if sentence else 0) or sentence not in "".join(faults):
                wrong.append(f"of a table of variables: wanted '{sentence}', found {faults}")
        (root / "include/environment.ipp").write_text('getenv("SKEIN_A")')
        if found(header, right) != ["no document has a table of the environment variables that headers read"]:
            wrong.append(f"of no table of variables: found {found(header, right)}")
        (root / "include/environment.ipp").unlink()
        found(header.replace("= 1", "= 2"), right)
        check(root, update=True)
        if page.read_text() != right.replace("`1`", "`2`"):
            wrong.append("--update does not write the table")
    return wrong


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        faults = self_test()
    elif arguments[0] == "--update":
        faults = check(pathlib.Path(arguments[1]), update=True)
    else:
        faults = check(pathlib.Path(arguments[0]))
    print("\n".join(faults) if faults else "every table of options says what its header says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
