"""Channels of other dialects: the real client sees them as channels that it knows."""

import asyncio
import json
import urllib.request

import pytest
from ag2.network import EV_TEXT

from harness.party import eventually, script, turns, types, wal

pytestmark = pytest.mark.parley

HEAD = ["ag2.channel.invite", "ag2.channel.invite.ack", "ag2.channel.opened"]


async def http(party, method: str, path: str, body: dict) -> dict:
    """Ask the hub by another dialect's routes."""

    def ask() -> dict:
        request = urllib.request.Request(
            party.url.replace("ws://", "http://", 1) + path,
            method=method,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.loads(response.read() or b"{}")

    return await asyncio.get_running_loop().run_in_executor(None, ask)


class Harbor:
    """An AGH workspace of the test's own, with one channel."""

    def __init__(self, party) -> None:
        self.party = party
        self.path = f"/agh/workspaces/ws_{party.tag}/network"

    async def join(self, name: str, peer: str) -> str:
        answer = await http(
            self.party, "POST", self.path + "/channels/dock/peers", {"agent": name, "peer_id": peer}
        )
        return answer["session_id"]

    async def say(self, session: str, text: str, **more) -> None:
        body = {"session_id": session, "channel": "dock", "kind": "say", "surface": "thread", "thread_id": "thread_tide"}
        await http(self.party, "POST", self.path + "/send", {**body, "body": {"text": text}, **more})


async def channel_of(client, kind: str) -> str:
    """The id of the one foreign channel of a type that an agent is listed in."""

    async def found():
        channels = await client._hub_client.list_channels(agent_id=client.agent_id)
        return [c.channel_id for c in channels if c.labels.get("parley.type") == kind]

    return (await eventually(found, what=f"a {kind}"))[0]


async def test_a_thread_is_a_discussion_that_the_addressed_answers_once(party):
    harbor = Harbor(party)
    bob = await party.agent("bob", *["here"] * 3)
    carl = await party.agent("carl", "never asked")
    tug = await harbor.join(party.name("tug"), "tug.s01")
    await harbor.join(bob.passport.name, "bob.s01")
    await harbor.join(carl.passport.name, "carl.s01")
    await harbor.say(tug, "to all")
    await harbor.say(tug, "bob?", to="bob.s01", work_id=f"work_{party.tag}")
    channel = await channel_of(bob, "thread")

    async def answered():
        log = await wal(bob, channel)
        return log if len(turns(log)) == 3 else None

    log = await eventually(answered)
    said = turns(log)
    assert [text for _, text in said] == ["to all", "bob?", "here"]
    assert said[2][0] == bob.agent_id
    assert types(log)[:3] == HEAD
    # A client may ask its model for "to all" as well, if "bob?" came before it asked
    # the hub; the hub refuses that answer.
    assert any("bob?" in prompt for prompt in script(bob).prompts)

    # The client's own fold of it does not fail, and both read the same.
    for who in (bob, carl):
        metadata = await who._hub_client.get_channel(channel)
        assert (metadata.manifest.type, len(metadata.participants)) == ("discussion", 3)
        state = await who._hub_client.adapter_state(channel)
        assert (state.turn_count, state.last_speaker_id) == (3, bob.agent_id)
        assert turns(await wal(who, channel)) == said
    # Neither answers the other: an answer addresses nobody.
    assert not await bob._hub_client.can_send(channel, bob.agent_id)
    assert not await bob._hub_client.can_send(channel, carl.agent_id)
    assert not script(carl).seen
    assert turns(await wal(bob, channel)) == said


async def test_a_direct_room_is_a_conversation(party):
    harbor = Harbor(party)
    bob = await party.agent("bob", "yes")
    tug = await harbor.join(party.name("tug"), "tug.s01")
    await harbor.join(bob.passport.name, "bob.s01")
    await harbor.say(
        tug, "are you there?", surface="direct", thread_id=None, direct_id="direct_" + "0" * 32, to="bob.s01"
    )
    channel = await channel_of(bob, "direct")

    async def answered():
        log = await wal(bob, channel)
        return log if len(turns(log)) == 2 else None

    log = await eventually(answered)
    assert [text for _, text in turns(log)] == ["are you there?", "yes"]
    asked, answer = (e for e in log if e.event_type == EV_TEXT)
    assert answer.causation_id == asked.envelope_id
    metadata = await bob._hub_client.get_channel(channel)
    assert metadata.manifest.type == "conversation"
    assert sorted(p.role.value for p in metadata.participants) == ["initiator", "respondent"]
    state = await bob._hub_client.adapter_state(channel)
    assert (state.turn_count, state.last_speaker_id) == (2, bob.agent_id)


async def test_what_was_missed_in_a_thread_is_answered_later(party):
    harbor = Harbor(party)
    bob = await party.agent("bob")
    tug = await harbor.join(party.name("tug"), "tug.s01")
    await harbor.join(bob.passport.name, "bob.s01")
    await party.leave(bob)
    await harbor.say(tug, "bob?", to="bob.s01", work_id=f"work_{party.tag}")
    back = await party.agent("bob", "back", attach=True)
    channel = await channel_of(back, "thread")

    async def answered():
        return [text for _, text in turns(await wal(back, channel))] == ["bob?", "back"]

    await eventually(answered)
