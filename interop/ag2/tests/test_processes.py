"""Agents in processes of their own, which share nothing but the hub."""

import asyncio
import contextlib
import json
import pathlib
import sys

from harness.conformance import spec
from harness.party import turns, until_turns, wal

PEER = pathlib.Path(__file__).parents[1] / "peer.py"


class Peer:
    def __init__(self, process):
        self.process = process

    async def word(self, expected):
        line = (await asyncio.wait_for(self.process.stdout.readline(), 20)).decode().split()
        assert line[:1] == [expected], line
        return line[1]


@contextlib.asynccontextmanager
async def peer(url, name, lines, *flags):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PEER),
        url,
        name,
        json.dumps(lines),
        *flags,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Peer(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@spec("ag2-hub#22")
@spec("ag2-hub#19", clause="by name")
async def test_a_discussion_between_processes(party):
    ada = await party.agent("ada", "a2")
    async with (
        peer(party.url, party.name("bo"), ["b1", "b2"]) as bo,
        peer(party.url, party.name("cy"), ["c1"]) as cy,
    ):
        bo_id, cy_id = await asyncio.gather(bo.word("ready"), cy.word("ready"))
        assert (await ada._hub_client.get_agent(party.name("bo"))).agent_id == bo_id
        channel = await ada.open(type="discussion", target=[party.name("bo"), party.name("cy")])
        await channel.send("a1")
        log = await until_turns(ada, channel.channel_id, 5)
    assert turns(log) == [
        (ada.agent_id, "a1"),
        (bo_id, "b1"),
        (cy_id, "c1"),
        (ada.agent_id, "a2"),
        (bo_id, "b2"),
    ]


@spec("ag2-hub#23")
async def test_a_killed_process_returns_and_answers_once(party):
    ada = await party.silent("ada")
    async with peer(party.url, party.name("bo"), []) as first:
        bo_id = await first.word("ready")
        channel = await ada.open(type="discussion", target=party.name("bo"))
    trigger = await channel.send("a1")
    async with peer(party.url, party.name("bo"), ["b1", "b1 again"], "--attach") as second:
        assert await second.word("resumed") == "1"
        assert await second.word("ready") == bo_id
        log = await until_turns(ada, channel.channel_id, 2)
    assert turns(log) == [(ada.agent_id, "a1"), (bo_id, "b1")]
    assert log[-1].causation_id == trigger
    assert await wal(ada, channel.channel_id) == log
