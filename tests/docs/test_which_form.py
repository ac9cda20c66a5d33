"""The table of forms is what bench/forms.py writes; its figures are the machine's and are not judged."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

import pytest

from docs.pages import DOCS, ROOT

if TYPE_CHECKING:
    from types import ModuleType


def forms() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_forms", ROOT / "bench/forms.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FORMS = forms()
NAMES = (*FORMS.READERS, *FORMS.CLOUDS)


def example(sizes: float = 1.0, starts: float = 20.0) -> dict[str, object]:
    """Return figures of which no two are alike."""
    return {
        form: FORMS.Figures(
            {name: sizes + number for number, name in enumerate(NAMES)} if form != "pip" else {},
            {name: starts + number for number, name in enumerate(NAMES)},
        )
        for form in FORMS.FORMS
    }


def without_figures(text: str) -> str:
    """Return a table with a hash for each figure, or span of two, in the cells that hold nothing else."""
    return re.sub(r"(?<=\| )\d+(\.\d+)?(–\d+(\.\d+)?)?(?= \|)", "#", text)


def test_the_page_has_the_table_of_the_program_with_figures_in_every_cell() -> None:
    part = (DOCS / "which-form.md").read_text().partition(FORMS.BEGIN)[2].partition(FORMS.END)[0]
    assert without_figures(part) == without_figures(FORMS.table(example())), "run `make bench-forms`"


def test_every_plugin_is_of_one_kind() -> None:
    assert {*NAMES} == {path.name for path in (ROOT / "plugins").iterdir() if path.is_dir()}


@pytest.mark.parametrize(
    ("values", "shown"), [((1.0, 2.5), "1.0–2.5"), ((9.0, 10.0), "9.0–10.0"), ((3.0, 3.01), "3.0"), ((), "–")]
)
def test_a_span_is_written_once_where_its_ends_look_alike(values: tuple[float, ...], shown: str) -> None:
    assert FORMS.span(dict(zip("ab", values, strict=False)), ("a", "b"), 1) == shown


def test_what_stands_around_the_table_is_kept_and_missing_marks_are_an_error() -> None:
    text = f"before\n{FORMS.BEGIN}replaced\n{FORMS.END}\nafter\n"
    written = FORMS.with_table(text, example())
    assert written.startswith("before\n")
    assert written.endswith(f"{FORMS.END}\nafter\n")
    assert "replaced" not in written
    assert FORMS.with_table(written, example()) == written
    with pytest.raises(SystemExit, match="is missing"):
        FORMS.with_table("no marks", example())


def test_a_command_that_fails_is_no_start_up_time() -> None:
    with pytest.raises(SystemExit, match="--version failed"):
        FORMS.starts({"false": ["/bin/false"]})


def test_two_archives_of_one_plugin_are_an_error() -> None:
    with pytest.raises(SystemExit, match="make clean"):
        FORMS.one(ROOT / "bench", "*.py")
