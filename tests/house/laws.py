#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of the house whose breaches are counted: a count may fall, and never rises above its line in laws.txt.

    probes FOLDER      `if constexpr (requires ...)`, also behind another condition, and of a constexpr bool that a call makes and an if
                       constexpr asks: a capability is declared and checked, not found by probing (the files that name concepts aside)
    long lines FOLDER  lines over 130 columns
    long headers       headers of more than 300 lines
    long functions     functions of more than 40 lines
    no sentence        public types, concepts and functions without a docstring
    begins with Of     docstrings that begin with "Of ...", and so say neither what a name is nor what it does
    drops a NaN        largest differences that std::max makes, in tests: std::max(worst, NaN) is worst (tests/support/larger.hpp keeps it)
    device by value    operations that are given their device as an argument, where all others have it in angle brackets: ops::sgd<Device>(...)
    loose margins      `.margin(1e-9)` without `.epsilon(`, in tests: Catch allows 1.2e-5 of the value all the same, so that the margin says nothing
    names FILE         words of policies, transforms and precisions in what runs a step and should know none
    unformatted        places where clang-format is off: for tables whose columns say something
    pretend CUDA       lines of the pretend CUDA runtime: it pretends what the library calls, and no more
    captured bindings  lambdas that use the names of a structured binding around them, which clang++ before 16 refuses: the gate compiles our
                       tests by g++ alone, the sanitizers by clang++
    preconditioners    what curvature is made of, and whether there is any, in stages of a step that shall not ask

Usage: laws.py SOURCE_DIR [--list LAW | --update] | --self-test
--list prints the breaches of a law (such as "long functions"), --update lowers the counts in laws.txt."""
import collections
import pathlib
import re
import sys

COLUMNS, HEADER, FUNCTION = 130, 300, 40
CONDITION = r"if constexpr \(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*%s"
PROBE, ASKED = re.compile(CONDITION % r"?\brequires\b)"), re.compile(CONDITION % r")\)")
PROBED = re.compile(r"constexpr bool (\w+) = !?\s*requires\b(?!\s*\{\s*(?:typename|requires)\b)")      # a type or a value that is there is a declaration
MAY_PROBE = re.compile(r"(?:^|/)(?:concepts|queries)\.hpp$")
DEVICE_BY_VALUE = re.compile(r"\bops::\w+(?:<[^<>]*>)?\((?:typename )?[\w:]*(?:Device|Cpu|Cuda)\{\}|^(?:template <.*> )?(?:\w+ )+\w+\(Device, ")
INTERPRETERS = ("train/train_step.hpp", "train/trainer.hpp", "train/step/run_stages.hpp", "nn/executor.hpp")
FEATURES = re.compile(r"\b\w*(?:[Ss]harded|[Vv]irtual_?[Ss]hard|[Rr]eproducible|[Pp]arameter_?[Ss]erver|[Ss]erving|[Gg]ossip|[Mm]odel_?[Aa]verage|[Ll]oss_?[Ss]cal"
                      r"|[Cc]lip|[Kk]fac|[Ll]ars|[Pp]ipeline|fp16|bf16|[Cc]aptured)\w*")
KNOW_CURVATURE = tuple(f"train/step/{name}.hpp" for name in ("curvature", "overlapped_curvature", "check_step"))
PRECONDITIONERS = re.compile(r"\b\w*(?:[Kk]fac|[Kk]ronecker|needs_curvature|NoCurvature|RanksOfCurvature|[Oo]verlaps_?[Cc]urvature)\w*")
BODY = re.compile(r"^( *)(?=\S)(?!(?:if|else|for|while|switch|do|try|namespace|struct|class|union|enum|extern|return|case|default|requires|concept)\b|[}{\]#/*.]|\[(?!\[))[^\"]*\).*\{$")
DROPS = re.compile(r"\bstd::f?max(?:<\w+>)?\((?!moved\b)([\w.]+), std::f?abs\(.* - ")     # what has to move is not to be 1e300
UNFORMATTED = re.compile(r"//\s*clang-format off")
MARGIN = re.compile(r"\.margin\(((?:[^()]|\([^()]*\))*)\)")
MARGIN_MATTERS = 1e-5                                                                     # from here on Catch's own 1.2e-5 hardly adds
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e-?\d+)?")
BOUND = re.compile(r"\bauto&{0,2} \[([\w, ]+)\]")
LAMBDA = re.compile(r"\[([^\[\]]*)\]\s*(\([^;{}]*?\))?\s*(?:mutable\s*)?(?:->\s*[\w:<>,\s&*]+?)?\s*\{")
OF = re.compile(r"(?:^\s*///|///<) Of ")
TYPE = re.compile(r"^(?:template <.*> ?)?(?:inline )?(?:constexpr )?(?:struct|class|concept|enum class|enum) (?:alignas\([^)]*\) |SKEIN_\w+ )?(\w+)([^;]*)$")
FUNCTION_NAME = re.compile(r"^(?!return|using|namespace|static_assert|public|private|SKEIN_|#|//|\}|typedef|extern|template <> )(?:template <.*> )?(?:\[\[\w+\]\] )?"
                           r"[\w:<>,&*\s\.\(\)]*?[\s&*](\w+)\(")
KEYWORDS = {"bool", "requires", "sizeof", "decltype", "noexcept"}
PRIVATE = {"detail", "kernel", "in", "check", "v", "keep", "native", "functions"}


def functions(lines):
    """(first line, lines) of each function with a body, by the indentation that clang-format gives."""
    found, done = [], 0
    for number, line in enumerate(lines):
        match = BODY.match(line) if number >= done else None     # what stands within a function is part of it
        if not match or "=" in line.split("(")[0].replace("operator=", "").replace("==", ""):
            continue
        end = re.compile(r"^ {0,%d}\}" % len(match.group(1)))    # of a list of initializers the body ends further left
        for last in range(number + 1, len(lines)):
            if end.match(lines[last]):
                found.append((number + 1, last - number + 1))
                done = last
                break
    return found


def public_declarations(lines):
    """(line, name, has a sentence, opens a struct) of names at namespace scope, which is not indented, outside namespaces of PRIVATE."""
    stack, block = [], []
    for number, line in enumerate(lines):
        opened = re.match(r"^namespace ([\w:]*(?:inline SKEIN_ABI)?[\w: ]*)\{(?!.*\})", line)
        if opened:
            stack.append(opened.group(1).replace("::", " ").split()[-1] if opened.group(1).strip() else "")
            block = []
        elif re.match(r"^\}  // namespace", line):
            if stack:
                stack.pop()
            block = []
        elif not line.strip():
            block = []
        else:
            block.append(line)
            hidden = any(name in PRIVATE or name == "" for name in stack)
            if stack and not hidden and not line.startswith((" ", "/", "#", "}")):
                type_ = TYPE.match(line)
                call = None if type_ else FUNCTION_NAME.match(line)
                name = type_.group(1) if type_ else call.group(1) if call else None
                special = "template <>" in line or (type_ and re.match(r"\s*<|::", type_.group(2)))
                if type_ and line.rstrip().endswith(";"):
                    name = None
                if name and not special and not (call and (name.startswith(("operator", "SKEIN_")) or name in KEYWORDS)):
                    spoken = any(before.startswith("///") for before in block) or "///<" in line
                    yield number + 1, name, spoken, bool(type_ and re.search(r"\bstruct\b", line) and line.rstrip().endswith("{"))
                    if not line.rstrip().endswith((",", "(", ">")):
                        block = [b for b in block if b.startswith("///")] if line.startswith("template") and not type_ and not call else []


def begins_with_of(lines):
    """Lines of docstrings that begin with "Of "; within one a sentence may."""
    return [number + 1 for number, line in enumerate(lines)
            if OF.search(line) and ("///<" in line or number == 0 or not lines[number - 1].lstrip().startswith("///"))]


def public_without_sentence(lines):
    """(line, name) of public names that no `///` stands above (of overloads: above none)."""
    spoken, silent = set(), {}
    for number, name, has_sentence, _ in public_declarations(lines):
        if has_sentence:
            spoken.add(name)
        else:
            silent.setdefault(name, number)
    return [(line, name) for name, line in silent.items() if name not in spoken]


def loose_margins(text):
    """Lines of margins that are small, or have no number, in statements that set no epsilon."""
    found = []
    for match in MARGIN.finditer(text):
        begin, end = max(text.rfind(c, 0, match.start()) for c in ";{}"), text.find(";", match.end())
        numbers = [float(n) for n in NUMBER.findall(match.group(1))]
        if (not numbers or min(numbers) < MARGIN_MATTERS) and ".epsilon(" not in text[begin + 1:end]:
            found.append(text.count("\n", 0, match.start()) + 1)
    return found


def block_end(text, at):
    """Where the block ends in which `at` is, or the statement of a `for (` whose head it is in."""
    braces = parentheses = 0
    for i in range(at, len(text)):
        braces += (text[i] == "{") - (text[i] == "}")
        parentheses += (text[i] == "(") - (text[i] == ")")
        if braces < 0 or (parentheses < 0 and braces == 0 and text[i] in ";}"):
            return i
    return len(text)


def captured_bindings(text):
    """(line, name) of lambdas in whose body a name stands that a structured binding around them has made."""
    found = []
    text = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', lambda m: " " * len(m.group()), text)
    for bound in BOUND.finditer(text):
        for lambda_ in LAMBDA.finditer(text, bound.end(), block_end(text, bound.end())):
            body = text[lambda_.end():block_end(text, lambda_.end())]
            own = (lambda_.group(2) or "") + lambda_.group(1) * ("=" in lambda_.group(1)[1:]) + "".join(BOUND.findall(body))
            found += [(text.count("\n", 0, lambda_.start()) + 1, name) for name in re.findall(r"\w+", bound.group(1))
                      if re.search(r"(?<![\w.>:])%s\b(?!:)" % name, body) and not re.search(r"\b%s\b" % name, own)]
    return found


def house(path):
    parts = path.split("/")
    return parts[0] if len(parts) > 1 else "skein"


def probes(texts):
    """{path: [line, ...]} of texts, {path: text}."""
    asked = set().union(*(re.findall(r"\w+", condition) for text in texts.values() for condition in ASKED.findall(text)))
    found = {}
    for path, text in texts.items():
        starts = [m.start() for m in PROBE.finditer(text)] + [m.start() for m in PROBED.finditer(text) if m.group(1) in asked]
        found[path] = sorted(text.count("\n", 0, start) + 1 for start in starts)
    return found


def breaches(root):
    """{law: [place, ...]} of the tree below root."""
    found = collections.defaultdict(list)
    include = root / "include/skein"
    texts = {str(p.relative_to(include)): p.read_text() for p in sorted(include.rglob("*")) if p.suffix in (".hpp", ".ipp", ".cuh")}
    for path, lines in probes({path: text for path, text in texts.items() if not MAY_PROBE.search(path)}).items():
        if lines:
            found[f"probes {house(path)}"] += [f"{path}:{number}" for number in lines]
    for header in sorted(p for p in include.rglob("*") if p.suffix in (".hpp", ".ipp", ".cuh")):
        path, lines = str(header.relative_to(include)), header.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                found["long lines include"].append(f"{path}:{number}")
        if len(lines) > HEADER:
            found["long headers"].append(f"{path}: {len(lines)} lines")
        found["long functions"] += [f"{path}:{line}: {length} lines" for line, length in functions(lines) if length > FUNCTION]
        found["no sentence"] += [f"{path}:{line}: {name}" for line, name in public_without_sentence(lines)]
        found["begins with Of"] += [f"{path}:{line}" for line in begins_with_of(lines)]
        code = [re.sub(r"//.*|\"[^\"]*\"|^#include.*", "", line) for line in lines]
        found["device by value"] += [f"{path}:{n}" for n, line in enumerate(lines, 1) if DEVICE_BY_VALUE.search(line)]
        if path in INTERPRETERS:
            found[f"names {path}"] += [f"{path}:{n}: {word}" for n, line in enumerate(code, 1) for word in FEATURES.findall(line)]
        if path.startswith("train/step/") and path not in KNOW_CURVATURE:
            found["preconditioners"] += [f"{path}:{n}: {word}" for n, line in enumerate(code, 1) for word in PRECONDITIONERS.findall(line)]
    for source in sorted(p for p in (root / "tests/support/pretend").glob("*") if p.suffix in (".hpp", ".cpp")):
        found["pretend CUDA"] += [f"{source.relative_to(root)}:{number}" for number in range(1, len(source.read_text().splitlines()) + 1)]
    for folder in ("include", "src", "tests", "examples", "bench"):
        for source in sorted(p for p in (root / folder).rglob("*") if p.suffix in (".hpp", ".ipp", ".cpp", ".cu")):
            found["unformatted"] += [f"{source.relative_to(root)}:{number}" for number, line in enumerate(source.read_text().splitlines(), 1)
                                     if UNFORMATTED.search(line)]
    for folder in ("tests", "examples", "bench"):
        for source in sorted(p for p in (root / folder).rglob("*") if p.suffix in (".hpp", ".cpp", ".cu") and "fixtures" not in p.parts):
            text = source.read_text()
            found["captured bindings"] += [f"{source.relative_to(root)}:{line}: {name}" for line, name in captured_bindings(text)]
            if folder == "tests":
                found["loose margins"] += [f"{source.relative_to(root)}:{number}" for number in loose_margins(text)]
            for number, line in enumerate(text.splitlines(), 1):
                if len(line) > COLUMNS and not line.startswith("// expect: "):  # a compiler's sentence, word for word
                    found[f"long lines {folder}"].append(f"{source.relative_to(root)}:{number}")
                if DEVICE_BY_VALUE.search(line):
                    found["device by value"].append(f"{source.relative_to(root)}:{number}")
                if folder == "tests" and DROPS.search(line):
                    found["drops a NaN"].append(f"{source.relative_to(root)}:{number}")
    return found


def read_counts(path):
    counts = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            count, law = line.split(None, 1)
            counts[law] = int(count)
    return counts


def judge(found, counts):
    """(faults, counts that may fall)"""
    faults, lower = [], []
    for law in sorted(set(found) | set(counts)):
        count, most = len(found.get(law, [])), counts.get(law, 0)
        if count > most:
            faults.append(f"{law}: {count}, at most {most} (tests/house/laws.txt); laws.py . --list \"{law}\" names them")
        elif count < most:
            lower.append(f"{law}: {count} now, {most} in tests/house/laws.txt: laws.py . --update lowers it")
    return faults, lower


def self_test():
    text = """namespace skein::inline SKEIN_ABI::nn {
/// Spoken for.
template <class T> struct Good {
  int f(int a) const {
    if constexpr (requires { a; }) return a;
    return 1;
  }
};
struct Bad {
  int n;
};
struct Later;
/// Adds.
int add(int a, int b);
int add(int a);
inline int sub(int a, int b) { return a - b; }
namespace detail {
struct Hidden {
};
}  // namespace detail
}  // namespace skein::inline SKEIN_ABI::nn
""".splitlines()
    faults = []
    if public_without_sentence(text) != [(9, "Bad"), (16, "sub")]:
        faults.append(f"without sentence: {public_without_sentence(text)}")
    if functions(text) != [(4, 4)]:
        faults.append(f"functions: {functions(text)}")
    if begins_with_of(["/// Of two rows.", "/// Of three, too.", "int a();  ///< Of one row.", "/// Offers.", "  /// The sum.", "  /// Of two."]) != [1, 3]:
        faults.append("docstrings that begin with Of are not found")
    asks = """if constexpr (requires { a; }) return a;
else if constexpr (!Has<T> && requires { T::a; }) return b;
else if constexpr (kind(t) == Kind::a) return requires { c; };
inline constexpr bool by_call = requires(T& t) { t.call(); };
inline constexpr bool by_tag = requires { typename T::tag; };
static constexpr bool alone = requires { T::call(1); };
if constexpr (!by_call<T> || by_tag<T>) return alone;
if constexpr (sizeof(T) > 1 &&
              requires { T::a; }) return d;
"""
    if probes({"a.hpp": asks}) != {"a.hpp": [1, 2, 4, 8]}:
        faults.append(f"probes: {probes({'a.hpp': asks})}")
    if not MAY_PROBE.search("parallel/concepts.hpp") or MAY_PROBE.search("parallel/my_concepts.hpp"):
        faults.append("probes are not found")
    by_value = [bool(DEVICE_BY_VALUE.search(line)) for line in ("  ops::sgd(Device{}, a);", "ops::pool<C>(typename Frame::Device{}, g);", "ops::sgd<Device>(a);",
                                                                "template <class Device> void adam(Device, const A& a) {", "zeros<float>(Device{}, 3);")]
    if by_value != [True, True, False, True, False]:
        faults.append(f"devices by value: {by_value}")
    drops = [bool(DROPS.search(line)) for line in ("worst = std::max(worst, std::abs(a[i] - b[i]));", "m = std::max<double>(m, std::fabs(f(x) - y) / y);",
                                                   "size = std::max(size, std::abs(b[i]));", "moved = std::max(moved, std::abs(a - b));")]
    if drops != [True, True, False, False]:
        faults.append(f"differences that drop a NaN: {drops}")
    margins = loose_margins("CHECK(a == Approx(b).margin(1e-9));\nCHECK(a == Approx(b).margin(x ? 1e-11 : 2e-4));\nCHECK(a == Approx(f(b)).margin(tolerance));\n"
                            "CHECK(a == Approx(b).epsilon(0).margin(1e-9));\nCHECK(a == Approx(b)\n  .margin(at(i))\n  .epsilon(0));\nCHECK(a == Approx(1).margin(0.05));\n")
    if margins != [1, 2, 3]:
        faults.append(f"margins below Catch's epsilon: {margins}")
    captured = captured_bindings("""const auto [a, b] = f();
const auto one = [&](int b) { return b + x.a; };
run([=] { return g("a", b); });
for (const auto& [c, d] : all) run([&] { return c; });
for (const auto& [e, f] : all) {
  run([e = e] { return e; });
}
run([&] { return c + e; });
""")
    if captured != [(3, "b"), (4, "c")]:
        faults.append(f"captured bindings: {captured}")
    if FEATURES.findall("if (loss_scaler_.on()) VirtualShards<4>{}; steps()") != ["loss_scaler_", "VirtualShards"]:
        faults.append("names of features are not found")
    if PRECONDITIONERS.findall("if (optim::needs_curvature<O>) w.parts.curvature.drop(); KroneckerRun") != ["needs_curvature", "KroneckerRun"]:
        faults.append("words of preconditioners are not found")
    if judge({"a": ["x"], "b": ["x"]}, {"b": 2, "c": 1}) != (
            ['a: 1, at most 0 (tests/house/laws.txt); laws.py . --list "a" names them'],
            ["b: 1 now, 2 in tests/house/laws.txt: laws.py . --update lowers it", "c: 0 now, 1 in tests/house/laws.txt: laws.py . --update lowers it"]):
        faults.append("counts are not judged")
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "breaches are counted")
        return 1 if faults else 0
    root = pathlib.Path(sys.argv[1])
    table, found = root / "tests/house/laws.txt", breaches(root)
    if "--list" in sys.argv:
        print("\n".join(found.get(sys.argv[sys.argv.index("--list") + 1], [])))
        return 0
    counts = read_counts(table)
    faults, lower = judge(found, counts)
    if "--update" in sys.argv:
        head = [line for line in table.read_text().splitlines() if line.startswith("#")]
        rows = [f"{min(len(found.get(law, [])), most):5} {law}" for law, most in sorted(counts.items()) if found.get(law)]
        table.write_text("\n".join(head + rows) + "\n")
    print("\n".join(faults + lower) if faults or lower else "no count has risen")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
