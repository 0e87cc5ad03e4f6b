"""Ties a test to the numbered statements it holds.

    @spec("ag2-hub#23", clause="same agent_id after attach")
    async def test_…

A whole run of the newest AG2 against parley writes build/conformance/ag2.jsonl,
one line for each statement of each test: {"statement", "test", "passed"}. Any
other run writes nothing: it would say too little, or nothing about our hub.
"""

import json
import pathlib

import pytest

from .hubs import ROOT

MARK = "spec"


def spec(statement: str, *, clause: str = "") -> pytest.MarkDecorator:
    return getattr(pytest.mark, MARK)(statement, clause)


def known_statements() -> set[str]:
    known = set()
    for name in ("checklists.json", "seeds.json"):
        for file, statements in json.loads((ROOT / "conformance" / name).read_text()).items():
            known.update(f"{file}#{s['n']}" for s in statements)
    return known


class Report:
    """Collects what held; a pytest plugin."""

    def __init__(self, path: pathlib.Path | None) -> None:
        self.path = path
        self.lines: list[dict] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = known_statements()
        for item in items:
            for mark in item.iter_markers(MARK):
                if mark.args[0] not in known:
                    raise pytest.UsageError(f"{item.nodeid}: there is no statement {mark.args[0]}")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo):
        report = (yield).get_result()
        failed_around = report.when != "call" and report.failed
        if report.when != "call" and not failed_around:
            return
        if report.skipped:
            return
        for mark in item.iter_markers(MARK):
            statement, clause = mark.args
            test = f"interop/ag2/{item.nodeid}" + (f": {clause}" if clause else "")
            self.lines.append({"statement": statement, "test": test, "passed": report.passed})

    def pytest_sessionfinish(self) -> None:
        if self.path is None or not self.lines:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        ordered = sorted(self.lines, key=lambda line: (line["statement"], line["test"]))
        self.path.write_text("".join(json.dumps(line) + "\n" for line in ordered))
