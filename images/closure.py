"""Which files of the standard library, and which shared libraries, a plugin can reach: the rest stays out.

Every import statement counts, also inside functions, of the plugin and of every module of its SDK. Names that lead
nowhere must be those in unresolved.txt: a new one may be a module that was overlooked.
"""

from __future__ import annotations

import ast
import functools
import re
import struct
from pathlib import Path
from typing import NamedTuple

# Reached by name at run time, not by an import statement.
ALWAYS = (
    "_strptime",
    *[
        f"encodings.{name}"
        for name in ("ascii", "cp437", "cp1252", "idna", "latin_1", "punycode", "utf_8", "utf_8_sig")
    ],
    *[f"encodings.utf_{bits}{order}" for bits in (16, 32) for order in ("", "_be", "_le")],  # JSON may come in these
)
# Reviewed: tools for developers, interactive use, servers and mail; what imports them does so for that use only.
CUT = frozenset(
    re.findall(
        r"\w+",
        """bdb cProfile cgi cgitb cmd code crypt curses dbm distutils doctest ensurepip ftplib idlelib imaplib lib2to3
        mailbox nis nntplib ossaudiodev pdb poplib profile pstats pydoc pydoc_data readline rlcompleter smtpd sqlite3
        telnetlib test tkinter trace turtle unittest venv wsgiref xmlrpc""",
    )
)


class Closure(NamedTuple):
    """Files under the standard library's folder, and names that no file was found for."""

    files: set[Path]
    unresolved: set[str]


class Finder:
    """Finds modules in the application's folder, the standard library and its machine code."""

    def __init__(self, app: Path, stdlib: Path, builtins: set[str]) -> None:
        self.roots = (app, stdlib, stdlib / "lib-dynload")
        self.builtins = builtins
        self._listings: dict[Path, dict[str, Path]] = {}

    def find(self, name: str) -> Path | None:
        """Return the file of a module, the folder of a namespace package, or None."""
        for root in self.roots:
            *folders, last = name.split(".")
            folder = root.joinpath(*folders)
            found = self._listing(folder).get(last)
            if found:
                return found
        return None

    def _listing(self, folder: Path) -> dict[str, Path]:
        """Return the modules of a folder by name; `x.cpython-311-<platform>.so` is x."""
        if folder not in self._listings:
            entries = sorted(folder.iterdir(), reverse=True) if folder.is_dir() else []
            modules = {path.name.partition(".")[0]: path for path in entries if path.suffix == ".so"}
            modules |= {path.stem: path for path in entries if path.suffix == ".py"}
            for path in entries:
                if path.is_dir() and path.suffix == "" and path.name != "__pycache__":
                    init = path / "__init__.py"
                    if init.exists() or path.name not in modules:
                        modules[path.name] = init if init.exists() else path
            self._listings[folder] = modules
        return self._listings[folder]


def closure(app: Path, stdlib: Path, builtins: set[str]) -> Closure:
    """Follow every import of every module in `app`, through the standard library, to the end."""
    finder = Finder(app, stdlib, builtins)
    own = {_module_name(path, app) for path in app.rglob("*.py")}
    todo, seen, files, unresolved = sorted(own | set(ALWAYS)), set[str](), set[Path](), set[str]()
    while todo:
        name = todo.pop()
        if name in seen or name.partition(".")[0] in CUT:
            continue
        seen.add(name)
        path = finder.find(name)
        if path is None:
            if name.partition(".")[0] not in builtins:
                unresolved.add(name)
            continue
        parent = name.rpartition(".")[0]
        todo += [parent] if parent else []
        if path.is_relative_to(stdlib) and path.is_file():
            files.add(path)
        if path.suffix == ".py":
            modules, perhaps = imports(path.read_bytes(), name, path.name == "__init__.py")
            todo += [*modules, *(found for found in perhaps if finder.find(found))]
    files |= set(stdlib.glob("_sysconfigdata*.py")) if "sysconfig" in seen else set()
    return Closure(files, unresolved)


def _module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports(source: bytes, name: str, is_package: bool) -> tuple[frozenset[str], frozenset[str]]:
    """Return the absolute names in all import statements of a module, and in import_module calls with a literal.

    The second set holds each `package.name` of `from package import name`, which may or may not be a module.
    """
    package = name if is_package else name.rpartition(".")[0]
    modules, perhaps = set[str](), set[str]()
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            nodes += node.orelse  # what only a type checker reads
            continue
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node.module or "", node.level, package)
            modules.add(base)
            perhaps |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call):
            modules |= _literal_import(node, package)
        nodes += ast.iter_child_nodes(node)
    return frozenset(modules), frozenset(perhaps)


def _absolute(module: str, level: int, package: str) -> str:
    if not level:
        return module
    parts = package.split(".")
    base = parts[: len(parts) - level + 1]
    return ".".join([*base, *([module] if module else [])])


def _literal_import(call: ast.Call, package: str) -> set[str]:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in ("import_module", "__import__") or not call.args:
        return set()
    argument = call.args[0]
    if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
        return set()
    level = len(argument.value) - len(argument.value.lstrip("."))
    return {_absolute(argument.value.lstrip("."), level, package)}


# --- shared libraries ---

DT_NEEDED, DT_STRTAB, PT_LOAD, PT_DYNAMIC = 1, 5, 1, 2
MACHINES = {"amd64": 62, "arm64": 183}


def libraries(objects: list[Path], folders: list[Path], app: Path, architecture: str) -> dict[str, Path]:
    """Return the libraries that `objects` load, by name, from `folders`; those inside the SDK's wheels stay there.

    Raises FileNotFoundError for a library that is nowhere, ValueError for machine code of another architecture.
    """
    found: dict[str, Path] = {}
    bundled = {path.name for path in app.rglob("*.so*")}
    todo = [name for path in objects for name in needed(path, architecture)]
    # glibc loads it by itself when a thread ends the process, and aborts when it is not there.
    todo.append("libgcc_s.so.1")
    while todo:
        name = todo.pop()
        if name in found or name in bundled or name.startswith("ld-linux"):
            continue
        path = next((folder / name for folder in folders if (folder / name).exists()), None)
        if path is None:
            raise FileNotFoundError(f"no package holds the library {name}")
        found[name] = path.resolve()
        todo += needed(path, architecture)
    return found


def needed(path: Path, architecture: str) -> list[str]:
    """Return the DT_NEEDED names of a 64-bit little-endian ELF file."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != MACHINES[architecture]:
        raise ValueError(f"{path.name} is not machine code for {architecture}")
    table, size, count = (struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54))
    headers = [struct.unpack_from("<IIQQQQ", data, table + number * size) for number in range(count)]
    dynamic = [header for header in headers if header[0] == PT_DYNAMIC]
    if not dynamic:
        return []
    entries = [
        struct.unpack_from("<qQ", data, place) for place in range(dynamic[0][2], dynamic[0][2] + dynamic[0][5], 16)
    ]
    address = next(value for tag, value in entries if tag == DT_STRTAB)
    strings = next(
        offset + address - start
        for kind, _, offset, start, _, length in headers
        if kind == PT_LOAD and start <= address < start + length
    )
    names = [strings + value for tag, value in entries if tag == DT_NEEDED]
    return [data[place : data.index(b"\0", place)].decode() for place in names]
