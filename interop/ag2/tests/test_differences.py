"""What docs/ag2.md says of AG2's own hub is checked against the installed package."""

import inspect

import pytest

from harness.hubs import ROOT

pytestmark = [pytest.mark.newest, pytest.mark.parley]


def row(first: str) -> str:
    """What the page's table says of AG2's own hub in the row that begins so."""
    for line in (ROOT / "docs" / "ag2.md").read_text().splitlines():
        if line.startswith(f"| {first} |"):
            return line.split("|")[2].strip()
    raise AssertionError(f"docs/ag2.md has no row {first}")


def test_expectations_that_nobody_judges():
    from ag2.network.hub.expectations import default_evaluators, default_handlers

    assert {e.name for e in default_evaluators()} == {"acks_within", "reply_within", "max_silence"}
    assert {h.name for h in default_handlers()} == {"audit", "notify_channel", "auto_close"}
    assert row("`turn_within`") == "written down, never judged"
    for action in ("`warn`", "`hide`", "`remove`"):
        assert row(action) == "not acted on"


def test_a_post_is_not_synced():
    from ag2.knowledge import disk

    assert "fsync" not in inspect.getsource(disk)
    assert "not synced" in row("an acknowledged post")


def test_participants_read_and_close():
    from ag2.network.hub import core

    assert {"get_channel", "close_channel", "read_wal"} <= core._CHANNEL_SCOPED_OPS
    assert row("who may read and close") == "who takes part"


def test_whispers_are_read_by_all_who_take_part():
    from ag2.network.hub.core import Hub

    assert "audience" not in inspect.getsource(Hub.read_wal)
    assert row("whispers") == "in everyone's `read_wal`"


def test_tokens_are_the_programs():
    from ag2.network.auth import ApiKeyAuth

    assert list(inspect.signature(ApiKeyAuth).parameters) == ["keys", "resolver"]
    assert row("`api_key` tokens") == "a dictionary or a function of the program"


def test_limits_are_those_of_rules():
    import dataclasses

    from ag2.network.rule import LimitsBlock

    said = row("limits")
    for field in dataclasses.fields(LimitsBlock):
        assert f"`{field.name}`" in said
