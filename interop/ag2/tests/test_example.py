"""The README's example runs as it is written, twice."""

import os
import subprocess
import sys

import pytest

from harness.hubs import ROOT

SAID = """\
guide: How many paths are there?
scout: Two: by the river, and up the hill.
guide: Which would you take?
scout: The hill. Fewer bears.
guide: Then the hill it is.
(closed: max_turns)
"""


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / "ag2" / "two_agents.py"), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.newest
def test_it_runs_again_and_again(shared_hub):
    by_argument = run(shared_hub.url)
    assert (by_argument.stdout, by_argument.stderr, by_argument.returncode) == (SAID, "", 0)
    by_environment = run(PARLEY_URL=shared_hub.url)
    assert (by_environment.stdout, by_environment.stderr, by_environment.returncode) == (SAID, "", 0)
