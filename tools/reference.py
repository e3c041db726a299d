"""Writes docs/reference.md from the docstrings of the public names. `python tools/reference.py --check` compares only.

It reads the source and imports nothing of it, so that it needs no SDK and shows types as they are written.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
LIBRARY = REPOSITORY / "multinic"
TARGET = REPOSITORY / "docs" / "reference.md"

HEAD = """\
# Reference

The public names of `multinic`, written from their docstrings by `python tools/reference.py`. Inputs are dictionaries:
`MultinicRouter("router", {"region": "us-central1", "networks": [...], "machine": {...}})`. Other languages see the
same names in camelCase (docs of the package: `plugin/`).
"""

Documented = ast.ClassDef | ast.FunctionDef


def public() -> dict[str, str]:
    """Returns the public names and the module that each is in, as multinic/__init__.py imports them for checkers."""
    tree = ast.parse((LIBRARY / "__init__.py").read_text())
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("multinic."):
            names |= {alias.name: (node.module or "").removeprefix("multinic.") for alias in node.names}
    return names


def definitions(module: str) -> dict[str, Documented]:
    """Returns the classes and functions of a module."""
    tree = ast.parse((LIBRARY / f"{module}.py").read_text())
    return {node.name: node for node in tree.body if isinstance(node, Documented)}


def one_line(text: str) -> str:
    """Returns a docstring as one line of a table."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def fields(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr | None, ast.expr | None, str]]:
    """Yields name, annotation, value and docstring of what is documented by the text below it."""
    for node, below in pairwise(body):
        match node, below:
            case (
                ast.AnnAssign(target=ast.Name(name) | ast.Attribute(attr=name), annotation=kind, value=value),
                ast.Expr(ast.Constant(str(text))),
            ):
                yield name, kind, value, text
            case (
                ast.Assign(targets=[ast.Name(name) | ast.Attribute(attr=name)], value=value),
                ast.Expr(ast.Constant(str(text))),
            ):
                yield name, None, value, text


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Returns a table, or nothing if it would be empty."""
    if not rows:
        return ""
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines) + "\n"


def inputs(node: ast.ClassDef) -> str:
    """Returns the inputs that a dictionary takes."""
    rows = []
    for name, kind, _, text in fields(node.body):
        written = ast.unparse(kind) if kind else ""
        optional = re.fullmatch(r"NotRequired\[(.*)\]", written)
        shown = (optional[1] if optional else written).replace("pulumi.Input", "Input")
        rows.append((f"`{name}`", f"`{shown}`", "" if optional else "yes", one_line(text)))
    return table(("Input", "Type", "Required", "Meaning"), rows)


def outputs(node: ast.ClassDef) -> str:
    """Returns what a component has once it is declared."""
    found = list(fields(node.body))
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            found += fields(method.body)
    rows = [
        (f"`{name}`", f"`{ast.unparse(kind).replace('pulumi.', '')}`" if kind else "plain", one_line(text))
        for name, kind, _, text in found
    ]
    return table(("Output", "Type", "Meaning"), rows)


def values(node: ast.ClassDef) -> str:
    """Returns the values of an enumeration."""
    rows = [(f"`{ast.literal_eval(value)}`", one_line(text)) for _, _, value, text in fields(node.body) if value]
    return table(("Value", "Meaning"), rows)


def kind_of(node: Documented) -> str:
    """Returns what a name is: component, inputs, values, or other."""
    bases = {ast.unparse(base) for base in node.bases} if isinstance(node, ast.ClassDef) else set()
    if "pulumi.ComponentResource" in bases:
        return "component"
    if "TypedDict" in bases:
        return "inputs"
    return "values" if bases & {"StrEnum", "Enum"} else "other"


def entry(name: str, node: Documented) -> str:
    """Returns the part about one name."""
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    if not text:
        raise SystemExit(f"{name} has no docstring")
    body = {"component": outputs, "inputs": inputs, "values": values}.get(kind_of(node), lambda _: "")
    return f"### {name}\n\n{prose(text)}\n\n{body(node) if isinstance(node, ast.ClassDef) else ''}"


def prose(text: str) -> str:
    """Returns a docstring as Markdown: its sections (Args, Raises …) become lists."""
    lines = []
    for line in text.splitlines():
        if section := re.fullmatch(r"(Args|Attributes|Returns|Raises):", line):
            lines += [f"{section[1]}:", ""]
        elif item := re.match(r"    (\w+): (.*)", line):
            lines.append(f"- `{item[1]}`: {item[2]}")
        else:
            lines.append(line.strip() if line.startswith("        ") else line)
    return "\n".join(lines)


def testing() -> str:
    """Returns the part about `multinic.testing`."""
    module = ast.parse((LIBRARY / "testing.py").read_text())
    parts = [f"## multinic.testing\n\n{inspect.cleandoc(ast.get_docstring(module) or '')}\n\n"]
    for name, node in (definitions("testing_declared") | definitions("testing")).items():
        if name.startswith("_"):
            continue
        text = prose(inspect.cleandoc(ast.get_docstring(node) or ""))
        if isinstance(node, ast.FunctionDef):
            parts.append(f"### {name}\n\n```python\n{name}({ast.unparse(node.args)})\n```\n\n{text}\n\n")
        else:
            methods = [f"- `{one.name}({ast.unparse(one.args)})`: {first(one)}\n" for one in public_methods(node)]
            parts.append(f"### {name}\n\n{text}\n\n{'Methods:' if methods else ''}\n\n{''.join(methods)}\n")
    return "".join(parts)


def public_methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Returns the methods of a class that users call."""
    return [one for one in node.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")]


def first(node: ast.FunctionDef) -> str:
    """Returns the first sentence of a docstring."""
    return one_line((ast.get_docstring(node) or "").split("\n\n")[0])


def write() -> str:
    """Returns the whole document."""
    groups: dict[str, list[str]] = {"component": [], "inputs": [], "values": [], "other": []}
    for name, module in sorted(public().items()):
        node = definitions(module)[name]
        groups[kind_of(node)].append(entry(name, node))
    titles = {"component": "Components", "inputs": "Inputs", "values": "Values", "other": "Errors"}
    parts = [HEAD, *(f"## {titles[kind]}\n\n{''.join(found)}" for kind, found in groups.items()), testing()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    """Writes the document, or with --check says whether it is up to date."""
    text = write()
    if arguments != ["--check"]:
        TARGET.write_text(text)
    elif not TARGET.is_file() or TARGET.read_text() != text:
        sys.stderr.write("docs/reference.md is not up to date: run `python tools/reference.py`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
