"""What a run of the kit found: as a table, as JSON, as JUnit XML."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

from .cases import LEVELS
from .kit import FAIL, PASS, SHORT, SKIPPED, Row

if TYPE_CHECKING:
    from collections.abc import Sequence


class Report(NamedTuple):
    """The rows of a kind for a command; with `strict`, falling short is failing. `network` is what holds it."""

    kind: str
    command: Sequence[str]
    network: str
    strict: bool
    rows: Sequence[Row]

    @property
    def conforms(self) -> bool:
        """Nothing fails, and something was tried."""
        bad = {FAIL, SHORT} if self.strict else {FAIL}
        tried = any(row.result != SKIPPED for row in self.rows)
        return tried and not any(row.result in bad for row in self.rows)


def counts(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Return {level: {result: how many}}, of levels and results that occur."""
    found: dict[str, dict[str, int]] = {}
    for level in LEVELS:
        results = Counter(row.result for row in rows if row.case.level == level)
        if results:
            found[level] = {name: results[name] for name in (PASS, FAIL, SHORT, SKIPPED) if results[name]}
    return found


def text(report: Report) -> str:
    """Return a line for each vector, then a summary."""
    lines = [f"{'level':<8}{'result':<13}vector"]
    lines += [
        f"{row.case.level:<8}{row.result:<13}{row.case.id}{': ' if row.why else ''}{row.why}" for row in report.rows
    ]
    lines += ["", f"command  {' '.join(report.command)}", f"kind     {report.kind}", f"network  {report.network}"]
    for level, results in counts(report.rows).items():
        lines.append(f"{level:<9}{', '.join(f'{number} {result}' for result, number in results.items())}")
    lines.append("conforms" if report.conforms else "does not conform")
    return "\n".join(lines) + "\n"


def as_json(report: Report) -> str:
    """Return everything, for programs."""
    rows = [
        {
            "vector": row.case.id,
            "level": row.case.level,
            "result": row.result,
            "seconds": round(row.seconds, 3),
            "findings": [each._asdict() for each in row.findings],
        }
        for row in report.rows
    ]
    whole = {**report._asdict(), "conforms": report.conforms, "summary": counts(report.rows), "rows": rows}
    whole["vectors"] = whole.pop("rows")
    return json.dumps(whole, indent=2) + "\n"


def junit(report: Report) -> bytes:
    """Return JUnit XML: a test case for each vector, classes by kind and level."""
    bad = {FAIL, SHORT} if report.strict else {FAIL}
    failures = sum(row.result in bad for row in report.rows)
    skipped = sum(row.result == SKIPPED for row in report.rows)
    seconds = sum(row.seconds for row in report.rows)
    numbers = {"tests": len(report.rows), "failures": failures, "errors": 0, "skipped": skipped}
    attributes = {name: str(number) for name, number in numbers.items()} | {"time": f"{seconds:.3f}"}
    root = ET.Element("testsuites", attributes)
    suite = ET.SubElement(root, "testsuite", {"name": f"execcred conformance {report.kind}", **attributes})
    for row in report.rows:
        name = {"classname": f"{report.kind}.{row.case.level}", "name": row.case.id, "time": f"{row.seconds:.3f}"}
        case = ET.SubElement(suite, "testcase", name)
        if row.result in bad:
            ET.SubElement(case, "failure", {"message": row.why, "type": row.findings[0].level})
        elif row.result == SKIPPED:
            ET.SubElement(case, "skipped", {"message": row.why})
        elif row.why:
            ET.SubElement(case, "system-out").text = row.why
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written
