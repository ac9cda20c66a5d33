"""Collects the stable codes from the code: whatever text stands where a kind of error takes its code."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
# What is not written in Python, or starts before it: texts that look like a code, and are no other thing there.
OTHERS = {"images/launcher.c": r'"([a-z]+(?:-[a-z]+)+)"', "images/zipapp.py": r"\[([a-z]+(?:-[a-z]+)+)\]"}
# Exit status by kind of error; 0: another argument tells it.
KINDS = {"ExecCredError": 1, "BadRequest": 2, "TryAgain": 3, "LoginNeeded": 4, "Problem": 0, "_cannot_unpack": 1}
SOURCES = [
    path
    for path in sorted([*ROOT.glob("common/**/*.py"), *ROOT.glob("plugins/*/*.py"), *ROOT.glob("images/execcred_*.py")])
    if not path.name.startswith("_rules")  # findings of lint have a collector of their own
]


def texts(node: ast.expr) -> list[str]:
    """Return the texts that an expression may be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return [*texts(node.body), *texts(node.orelse)]
    return []


def kinds_of(tree: ast.Module) -> dict[str, int]:
    """Return the names that kinds of errors have in a module: `FIX, RETRY = ExecCredError, TryAgain` makes more."""
    names = dict(KINDS)
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Tuple)
            and isinstance(node.targets[0], ast.Tuple)
        ):
            for target, value in zip(node.targets[0].elts, node.value.elts, strict=True):
                if isinstance(target, ast.Name) and isinstance(value, ast.Name) and value.id in KINDS:
                    names[target.id] = KINDS[value.id]
    return names


def rows_of(tree: ast.Module) -> dict[str, int]:
    """Return {class: position of its argument `code`} of the classes in a module that keep a code for later."""
    found = {}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name in KINDS:
            continue
        for each in node.body:
            names = [argument.arg for argument in each.args.args] if isinstance(each, ast.FunctionDef) else []
            if isinstance(each, ast.FunctionDef) and each.name == "__init__" and "code" in names:
                found[node.name] = names.index("code") - 1
    return found


def raised(tree: ast.Module) -> Iterator[tuple[list[str], int, int]]:
    """Yield (codes, exit status, line) of each error that is made, and of each row of a table that makes one."""
    kinds, rows = kinds_of(tree), rows_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds and node.args:
            yield texts(node.args[0]), kinds[node.func.id], node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in rows:
            yield texts(node.args[rows[node.func.id]]) or ["?"], 0, node.lineno
        if isinstance(node, ast.Tuple):
            for kind, code in zip(node.elts, node.elts[1:], strict=False):
                if isinstance(kind, ast.Name) and kind.id in kinds and not isinstance(code, ast.Name):
                    yield texts(code), kinds[kind.id], node.lineno


def statuses_in_code() -> dict[str, set[int]]:
    """Return {code: its exit statuses}, of errors whose kind tells one."""
    found: dict[str, set[int]] = {}
    for path in SOURCES:
        for codes, status, _ in raised(ast.parse(path.read_text())):
            for code in codes if status else ():
                found.setdefault(code, set()).add(status)
    return found


def errors_in_code() -> dict[str, list[str]]:
    """Return {code: places}; a code that cannot be read stands under ""."""
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        for codes, _, line in raised(ast.parse(path.read_text())):
            for code in codes or [""]:
                found.setdefault(code, []).append(f"{path.relative_to(ROOT)}:{line}")
    for name, pattern in OTHERS.items():
        for code in re.findall(pattern, (ROOT / name).read_text()):
            found.setdefault(code, []).append(name)
    return found


def findings_in_code() -> set[str]:
    """Return the codes of lint: the text after the field in what a rule yields, and the third argument of a Finding."""
    found: set[str] = set()
    for path in (ROOT / "common/execcred/tool").glob("_rules*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
                found.update(texts(node.value.elts[1]) or _assigned(path, node.value.elts[1]))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                found.update(texts(node.args[2]))
    return found


def _assigned(path: Path, name: ast.expr) -> set[str]:
    """Return the texts that a variable of this name is first in: `code, what = ("a", …) if … else ("b", …)`."""
    assert isinstance(name, ast.Name)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            first = node.targets[0].elts[0]
            if isinstance(first, ast.Name) and first.id == name.id and isinstance(node.value, ast.IfExp):
                branches = (node.value.body, node.value.orelse)
                found.update(text for each in branches if isinstance(each, ast.Tuple) for text in texts(each.elts[0]))
    return found
