#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/reference: every public name of include/skein with its signature, its options and its sentence, made by Doxygen (XML) and this script.

    reference.py SOURCE_DIR [ignored]   checks: the pages are complete (every public name that laws.py finds, and the fields of every plain
                                        struct in order of declaration with their defaults, both read from the headers without Doxygen);
                                        and, where Doxygen is installed, that they are what it makes of the headers today
    reference.py --update SOURCE_DIR    writes the pages
    reference.py --self-test

Public is what stands in a namespace of the library whose name is none of laws.PRIVATE, outside the kernels (ops/cpu, ops/cuda,
ops/reference)."""
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import laws

UMBRELLAS = ("skein.hpp", "parallel.hpp", "simulate.hpp", "mpi.hpp", "gloo.hpp", "cuda.hpp", "nccl.hpp")
KERNELS = re.compile(r"^ops/(cpu|cuda|reference)/")
HIDDEN = laws.PRIVATE | {"reference", "std", "fmt", "boost"}
PAGES = {  # of the reference, in the order of its table of contents
    "nn": "layers, containers, losses, models, executors",
    "optim": "optimizers, schedules, gradient transforms",
    "data": "data sets, readers, loaders",
    "train": "the trainer, its options, metrics, callbacks, history",
    "tensor": "tensors, expressions, sparse matrices, files of NumPy",
    "core": "errors, shapes, random numbers, threads of a rank",
    "parallel": "policies of several ranks and their options",
    "comm": "communicators, collectives, messages, compression",
    "autodiff": "dual numbers and the tape",
    "draw": "plots as SVG",
    "device": "devices and their memory",
    "plan": "networks, schedules, all-reduces and predictions as plain data",
    "ops": "operations on arrays: what layers and optimizers are made of",
}
DOXYGEN = """
INPUT = {include}
FILE_PATTERNS = *.hpp
RECURSIVE = YES
EXCLUDE = {include}/ops/cpu {include}/ops/cuda {include}/ops/reference
OUTPUT_DIRECTORY = {output}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
QUIET = YES
WARNINGS = NO
WARN_IF_DOC_ERROR = NO
EXTRACT_ALL = YES
MACRO_EXPANSION = YES
PREDEFINED = SKEIN_INLINE=inline SKEIN_MPI_INLINE=inline SKEIN_COMPILED=1 SKEIN_COMPILED_MPI=1 SKEIN_ALWAYS_INLINE= SKEIN_NOINLINE= SKEIN_HOST_DEVICE=
SORT_MEMBER_DOCS = NO
MARKDOWN_SUPPORT = NO
AUTOLINK_SUPPORT = NO
HAVE_DOT = NO
INCLUDE_GRAPH = NO
INCLUDED_BY_GRAPH = NO
CLASS_GRAPH = NO
COLLABORATION_GRAPH = NO
INPUT_FILTER = "sed -e s/::inline.SKEIN_ABI//"
"""


# ---- reading the headers without Doxygen: what the pages must have

def headers_of(root):
    include = root / "include/skein"
    return {p.relative_to(include).as_posix(): p for p in sorted(include.rglob("*.hpp"))
            if not KERNELS.match(p.relative_to(include).as_posix()) and p.name not in UMBRELLAS + ("fwd.hpp", "xtensor.hpp")}


def umbrella_of(root):
    """{header: the umbrella that includes it}, directly; the first of UMBRELLAS that does."""
    found = {}
    for umbrella in UMBRELLAS:
        text = (root / "include/skein" / umbrella)
        for header in re.findall(r'^#include "([^"]+)"', text.read_text(), re.M) if text.exists() else ():
            found.setdefault(header, umbrella)
    return found


def fields_of(lines, at):
    """[(name, default)] of the struct that begins in line `at`, in order; None where it is no plain struct."""
    statement, fields, depth = "", [], 0
    for line in lines[at + 1:]:
        code = re.sub(r"\s*//.*", "", line).rstrip()
        if code.startswith("}"):
            return fields
        if re.match(r"^ (public|private|protected):", code):
            return None
        if depth == 0 and not statement and re.match(r"^  (using|static|friend|template|typedef|constexpr|explicit|struct|class|enum|virtual|operator|~|\[\[)\b|^  ~|.*\boperator\b", code):
            depth += code.count("{") - code.count("}")
            if depth == 0 and not code.endswith((";", "}")):
                statement = "skip "
            continue
        if depth:
            depth += code.count("{") - code.count("}")
            continue
        if not code:
            continue
        statement += " " + code.strip()
        if not code.endswith((";", "}", "{")):
            continue
        depth = max(0, statement.count("{") - statement.count("}"))
        if statement.endswith(";") and depth == 0 and not statement.startswith("skip "):
            fields += declared(statement.strip()[:-1])
        statement = "" if depth == 0 or not statement.endswith(";") else statement
    return fields


def declared(statement):
    """The fields of one declaration: [(name, default)]; none where it declares a function."""
    pointer = re.match(r".*\(\*(\w+)\)\([^=]*\)\s*(?:=\s*(.*))?$", statement)
    if pointer:
        return [(pointer[1], plain(pointer[2] or ""))]
    if "static_assert" in statement:
        return []
    pieces, level, piece = [], 0, ""
    statement = re.sub(r"'(.)'", lambda m: f"'\x01{ord(m[1])}\x01'", statement).replace("<<", "\x02")
    for letter in statement:
        level += letter in "<({[" and 1 or letter in ">)}]" and -1 or 0
        if letter == "," and level == 0:
            pieces.append(piece)
            piece = ""
        else:
            piece += letter
    pieces.append(piece)
    found = []
    for piece in pieces:
        cut, level = len(piece), 0
        for i, letter in enumerate(piece):
            if level == 0 and (letter == "{" or letter == "=" and piece[i + 1:i + 2] != "="):
                cut = i
                break
            level += letter in "<([" and 1 or letter in ">)]" and -1 or 0
        match = re.match(r"^(.*[\s&*>])?(\w+)(?:\[[^\]]*\])*$", piece[:cut].strip(), re.S)
        if not match or (not match[1] and not found) or match[2] in ("const", "noexcept", "override") or match[2][0].isdigit():
            return found
        default = piece[cut + 1:] if piece[cut:cut + 1] == "=" else piece[cut:]
        default = re.sub("\x01(\\d+)\x01", lambda m: chr(int(m[1])), default).replace("\x02", "<<")
        found.append((match[2], plain(default)))
    return found


def plain(text):
    return re.sub(r"\s+", "", text)


# ---- the pages, of Doxygen's XML

def text_of(node):
    """Words of a description: paragraphs as lines."""
    if node is None:
        return ""
    paragraphs = ["".join(p.itertext()) for p in node.iter("para")]
    paragraphs = [re.sub(r"\bsk(?!ein)(?=[a-z_]+::)", "sk::", p) for p in paragraphs]  # Doxygen takes `::` for its sign of a link
    return " ".join(re.sub(r"\s+", " ", p).strip() for p in paragraphs if p.strip())


def sentence(node):
    said = " ".join(filter(None, (text_of(node.find("briefdescription")), text_of(node.find("detaileddescription"))))).strip()
    return prose(said)


def prose(said):
    """A comment's words, safe in Markdown."""
    return "".join(re.sub(r"([<*])", r"\\\1", part) if i % 2 == 0 else f"`{part}`" for i, part in enumerate(said.split("`")))


def code_of(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip() if node is not None else ""


def tidy(code):
    """Doxygen's spacing as the library writes it."""
    code = re.sub(r"\bskein::(?:\w+::)*(?=[A-Za-z_~]\w*(?:\(|$|<))", "", code)
    code = re.sub(r"< ", "<", re.sub(r" >", ">", code))
    code = re.sub(r" ([&*]+)(?=\w|,|\)|$| )", r"\1 ", code)
    code = re.sub(r"([&*]) (?=[,)])", r"\1", code).replace("& &", "&&")
    code = re.sub(r"(?<=[\w>&*])=(?=[\w{\"'-])", " = ", code)
    return re.sub(r"\s+", " ", code).replace("( ", "(").replace("operator ", "operator").strip()


def template_of(node):
    parameters = []
    for p in node.findall("templateparamlist/param"):
        name = code_of(p.find("declname"))
        default = code_of(p.find("defval"))
        words = code_of(p.find("type"))
        if name and not re.search(rf"\b{re.escape(name)}$", words):
            words = words.replace("...", "... ").strip() + " " + name if not words.endswith("...") else words + " " + name
        parameters.append(words + (" = " + default if default else ""))
    return f"template <{', '.join(parameters)}> " if node.find("templateparamlist") is not None else ""


def defaulted(node):
    """A function's arguments, with defaults, and what follows them."""
    return node.find("argsstring").text or ""


def signature(node):
    kind, name = node.get("kind"), node.find("name").text
    template = tidy(template_of(node))
    template += " " if template else ""
    type_ = tidy(code_of(node.find("type")))
    if kind == "function":
        static = "static " if node.get("static") == "yes" and "static" not in type_ else ""
        explicit = "explicit " if node.get("explicit") == "yes" else ""
        text = f"{static}{explicit}{type_ + ' ' if type_ else ''}{name}{tidy(defaulted(node))}"
        requires = code_of(node.find("requiresclause"))
        return template + (f"requires {requires} " if requires else "") + text.replace("friend ", "")
    if kind == "typedef":
        return f"{template}using {name} = {type_}"
    initializer = tidy(code_of(node.find("initializer")))
    if kind == "variable":
        return f"{template}{'static ' if node.get('static') == 'yes' and 'static' not in type_ else ''}{type_} {name}" + (" " + initializer if initializer and len(initializer) < 80 else "")
    return name


def cell(text):
    return text.replace("|", "\\|")


def code_cell(text):
    return f"`{cell(text)}`" if text else ""


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def line_of(node):
    return int(node.find("location").get("line"))


def short_path(path):
    return path.split("include/skein/")[-1]


def header_comment(path):
    lines = path.read_text().splitlines()[1:]
    taken = []
    for line in lines:
        if not line.startswith("// "):
            break
        taken.append(line[3:])
    return " ".join(taken)


def enum_rows(node):
    return [[code_cell(v.find("name").text), cell(sentence(v))] for v in node.findall("enumvalue")]


def members_of(compound):
    members = [m for section in compound.findall("sectiondef") if section.get("kind", "").startswith(("public", "user-defined", "friend", "related"))
               for m in section.findall("memberdef") if m.get("prot") == "public"]
    return sorted(members, key=line_of)


def type_entry(compound, level="###"):
    kind = compound.get("kind")
    full = compound.find("compoundname").text
    name = full.split("::")[-1]
    if kind == "concept":
        raw = "".join(compound.find("initializer").itertext())
        head = re.sub(r"\s+", " ", raw).replace("skein::", "").strip()
        return name, full, [f"{level} `{display(full)}`", "", sentence(compound), "", "```cpp", head, "```", ""]
    template = tidy(template_of(compound))
    out = [f"{level} `{display(full)}`", "", sentence(compound), ""]
    bases = ", ".join(tidy(code_of(b)) for b in compound.findall("basecompoundref") if b.get("prot") == "public")
    head = (template + "\n" if template else "") + f"{kind} {name}" + (f" : {bases}" if bases else "")
    out += ["```cpp", head, "```", ""]
    members = [m for m in members_of(compound) if "detail::refused::" not in code_of(m.find("type"))]  # names of other libraries
    fields = [m for m in members if m.get("kind") == "variable" and m.get("static") != "yes" and not m.find("name").text.startswith("@")]
    if fields:
        rows = []
        for field in fields:
            default = tidy(code_of(field.find("initializer")))
            default = default[1:].strip() if default.startswith("=") else default
            after = code_of(field.find("argsstring"))             # [4] of an array, )(int) of a pointer to a function
            type_ = tidy(code_of(field.find("type")) + ("" if after.startswith("[") else after))
            rows.append([code_cell(field.find("name").text + (after if after.startswith("[") else "")), code_cell(type_), code_cell(default),
                         cell(sentence(field))])
        out += table(["field", "type", "default", ""], rows)
    for m in members:
        if m.get("kind") == "enum":
            out += [f"`{m.find('name').text}`: {sentence(m)}", ""] + table(["value", ""], enum_rows(m))
    spoken, silent = [], []
    for m in members:
        if m in fields or m.get("kind") == "enum" or m.find("name").text.startswith(("~", "@")) or "=delete" in (m.findtext("argsstring") or ""):
            continue
        if m.get("kind") == "friend":
            continue
        said = sentence(m)
        (spoken if said else silent).append((signature(m), said))
    out += [f"- `{s}`: {said}" for s, said in spoken] + ([""] if spoken else [])
    if {"describe", "forward", "backward"} <= {m.find("name").text for m in members}:
        silent = []                                              # what executors call, the same for every layer: nn/layer.hpp
    if silent:
        out += ["```cpp"] + [s + ";" for s, _ in silent] + ["```", ""]
    return name, full, out


def display(full):
    return full.removeprefix("skein::")


def is_public(full):
    return full.startswith("skein::") and not set(full.split("::")[:-1]) & HIDDEN and "<" not in full


def read_xml(folder):
    """{header: [(line, name, full name, lines of the entry)]}"""
    entries = collections.defaultdict(list)
    inner = set()
    roots = [ElementTree.parse(p).getroot().find("compounddef") for p in sorted(folder.glob("*.xml"))
             if p.name.startswith(("class", "struct", "concept", "namespaceskein"))]
    for compound in roots:
        if compound.get("kind") in ("class", "struct"):
            inner |= {i.get("refid") for i in compound.findall("innerclass")}
    for compound in roots:
        full = compound.find("compoundname").text
        if compound.get("kind") == "namespace":
            if full != "skein" and not is_public(full + "::x"):
                continue
            overloads = collections.defaultdict(list)
            for m in (m for s in compound.findall("sectiondef") for m in s.findall("memberdef")):
                name = m.find("name").text
                if name.startswith("SKEIN") or name in ("requires", "return") or "<" in name:
                    continue
                if m.get("kind") == "function" and code_of(m.find("type")) == "" or m.get("kind") in ("define", "friend"):
                    continue                                     # deduction guides
                overloads[short_path(m.find("location").get("file")), name].append(m)
            for (header, name), group in overloads.items():
                group.sort(key=line_of)
                whole = f"{full}::{name}"
                out = [f"### `{display(whole)}`", "", " ".join(dict.fromkeys(filter(None, map(sentence, group)))), ""]
                if group[0].get("kind") == "enum":
                    out += table(["value", ""], enum_rows(group[0]))
                else:
                    out += ["```cpp"] + [signature(m) + ";" for m in group] + ["```", ""]
                entries[header].append((line_of(group[0]), name, whole, out))
        elif compound.get("id") not in inner and is_public(full) and compound.find("location") is not None:
            if compound.get("kind") != "concept" and not members_of(compound) and not sentence(compound):
                continue
            name, whole, out = type_entry(compound)
            entries[short_path(compound.find("location").get("file"))].append((line_of(compound), name, whole, out))
    return entries


def anchor(full):
    return re.sub(r"[^\w\- ]", "", display(full).lower()).replace(" ", "-")


def pages_of(root, entries):
    """{name of the page: its text}"""
    umbrella, headers = umbrella_of(root), headers_of(root)
    pages, index = {}, []
    for page, about in PAGES.items():
        chosen = [h for h in headers if h.split("/")[0] == page and entries.get(h)]
        chosen.sort(key=lambda h: (UMBRELLAS.index(umbrella[h]) if h in umbrella else len(UMBRELLAS), h))
        out = [f"# Reference: {page}", "", f"{about[0].upper()}{about[1:]}. Made by `scripts/docs` of the headers; the guide is"
               f" [{page}](../guide/{page}.md). All names are in the namespace `skein`.", ""]
        seen = collections.Counter()
        for header in chosen:
            where = f"in `skein/{umbrella[header]}`" if header in umbrella else "included by its name, or by a header that needs it"
            out += [f"## `skein/{header}`", "", prose(header_comment(headers[header])) + f" ({where[0].upper()}{where[1:]}.)", ""]
            for _, name, full, lines in sorted(entries[header], key=lambda e: (e[0], e[1])):
                place = anchor(full)
                link = f"{page}.md#{place}" + (f"-{seen[place]}" if seen[place] else "")
                seen[place] += 1
                index.append((name, display(full), link, header in umbrella))
                out += lines
        pages[page] = re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in out)).strip() + "\n"
    pages["README"] = index_page(index)
    return pages


def index_page(index):
    out = ["# Reference", "", "Every public name: signature, options in order with types and defaults, and what it does. `scripts/docs` makes these pages"
           " of the headers with Doxygen, and a test compares them with the headers. How the names work together is in the [guide](../README.md).", ""]
    out += table(["page", "names"], [[f"[{page}]({page}.md)", about] for page, about in PAGES.items()])
    out += ["## All names", "", "Names that an umbrella header (`skein/skein.hpp`, `skein/parallel.hpp`, ...) has are bold.", ""]
    letters = collections.defaultdict(dict)
    for name, full, link, bold in sorted(index, key=lambda e: (e[0].lower(), e[1])):
        if name.startswith("operator"):
            continue
        letters[name[0].upper()].setdefault(full, f"**[{full}]({link})**" if bold else f"[{full}]({link})")
    for letter, names in sorted(letters.items()):
        out += [f"**{letter}**: " + ", ".join(names.values()), ""]
    return "\n".join(out).strip() + "\n"


def generate(root):
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(["doxygen", "-"], input=DOXYGEN.format(include=root.resolve() / "include/skein", output=folder), text=True,
                              capture_output=True, check=False)
        if made.returncode != 0:
            raise SystemExit("doxygen failed:\n" + made.stderr[-2000:])
        return pages_of(root, read_xml(pathlib.Path(folder) / "xml"))


# ---- judging

def entries_of_page(text):
    """{name: [text of an entry]} of a page; a name is its last part."""
    found = collections.defaultdict(list)
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        title = re.match(r"`([^`]+)`", part)
        found[title[1].split("::")[-1]].append(part)
    return found


def rows_of(entry):
    """[(field, default)] of the first table of fields."""
    rows = []
    match = re.search(r"^\| field \| type \| default \| *\|\n\|[-|]+\n((?:\|.*\n?)*)", entry, re.M)
    for line in match[1].splitlines() if match else ():
        cells = [c.strip().replace("\\|", "|").strip("`") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        rows.append((re.sub(r"\[.*", "", cells[0]), plain(cells[2])))
    return rows


def complete(root, pages):
    """What the headers have and the pages lack."""
    faults, checked = [], 0
    for header, path in headers_of(root).items():
        lines = path.read_text().splitlines()
        house = header.split("/")[0]
        known = entries_of_page(pages.get(house, ""))
        for number, name, _, opens_struct in laws.public_declarations(lines):
            if name not in known:
                faults.append(f"{header}:{number}: {name} is on no page: scripts/docs writes docs/reference")
            elif opens_struct:
                wanted = fields_of(lines, number - 1)
                if wanted and not any(rows_of(e) == wanted for e in known[name]):
                    shown = next((rows_of(e) for e in known[name] if rows_of(e)), [])
                    missing = next(((a, b) for a, b in zip(wanted + [None] * len(shown), shown + [None] * len(wanted)) if a != b), None)
                    faults.append(f"{header}:{number}: the fields of {name} differ from docs/reference/{house}.md (first: {missing[0]}, there"
                                  f" {missing[1]}): scripts/docs writes it")
                checked += bool(wanted)
    if not checked and not faults:
        faults.append("no struct with fields was found")
    return faults


def read_pages(root):
    return {p.stem: p.read_text() for p in (root / "docs/reference").glob("*.md")}


def check(root):
    pages = read_pages(root)
    faults = complete(root, pages)
    if not shutil.which("doxygen"):
        return faults, " (doxygen is not installed: their age is not checked)"
    fresh = generate(root)
    for name in sorted(set(fresh) | set(pages)):
        if fresh.get(name) != pages.get(name):
            old, new = pages.get(name, "").splitlines(), fresh.get(name, "").splitlines()
            line = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
            faults.append(f"docs/reference/{name}.md:{line + 1} is older than the headers: scripts/docs writes it")
    return faults, ""


def self_test():
    text = """struct Options {
  int epochs = 1;
  double from = 0, to = 1;  ///< both
  std::optional<int>
      scaling{};  ///< one
  std::vector<int> metrics{};
  long global(int ranks) const {
    int n = 1;
    return n;
  }
  using Scalar = float;
  static constexpr int n = 3;
  void f(int a) const;
  float* data = nullptr;
};""".splitlines()
    wanted = [("epochs", "1"), ("from", "0"), ("to", "1"), ("scaling", "{}"), ("metrics", "{}"), ("data", "nullptr")]
    faults = [] if fields_of(text, 0) == wanted else [f"fields: {fields_of(text, 0)}"]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        header = root / "include/skein/nn/a.hpp"
        header.parent.mkdir(parents=True)
        for umbrella in UMBRELLAS:
            (root / "include/skein" / umbrella).write_text("")
        header.write_text("// licence\n// A header.\nnamespace skein::inline SKEIN_ABI::nn {\n\n/// O.\n" + "\n".join(text) + "\n\n/// Adds.\nint add(int a);\n\n"
                          "}  // namespace skein::inline SKEIN_ABI::nn\n")
        rows = "".join(f"| `{n}` | `t` | `{d}` |  |\n" for n, d in wanted)
        good = f"### `nn::Options`\n\n| field | type | default | |\n|---|---|---|---|\n{rows}\n### `nn::add`\n\n"
        for page, count, sentence_ in [(good, 0, ""), (good.replace("### `nn::add`", ""), 1, "add is on no page"), (good.replace("`nullptr`", "`0`"), 1, "fields of Options"),
                                       (good.replace("| `from` | `t` | `0` |  |\n", ""), 1, "fields of Options")]:
            found = complete(root, {"nn": page})
            if len(found) != count or (sentence_ and sentence_ not in found[0]):
                faults.append(f"wanted {count} '{sentence_}', found {found}")
        if shutil.which("doxygen"):
            made = generate(root)["nn"]
            if complete(root, {"nn": made}) or "| `scaling` | `std::optional<int>` | `{}` | one |" not in made or "int add(int a);" not in made:
                faults.append("doxygen's page is not complete:\n" + made)
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults, note = self_test(), ""
    elif sys.argv[1] == "--update":
        root = pathlib.Path(sys.argv[2])
        (root / "docs/reference").mkdir(parents=True, exist_ok=True)
        fresh = generate(root)
        for page in (root / "docs/reference").glob("*.md"):
            if page.stem not in fresh:
                page.unlink()
        for name, text in fresh.items():
            (root / f"docs/reference/{name}.md").write_text(text)
        faults, note = complete(root, fresh), ""
    else:
        faults, note = check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "docs/reference has every public name, with the fields of today" + note)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
