"""Consulting: one question, one reply, closed."""

import asyncio

import pytest
from ag2.network import EV_CHANNEL_CLOSED, EV_TEXT, ProtocolError

from harness.conformance import spec
from harness.model import call
from harness.party import envelope_of, eventually, script, text_of, turns, types, until_closed, wal

OPENING = ["ag2.channel.invite", "ag2.channel.invite.ack", "ag2.channel.opened"]


@spec("ag2-hub#48")
@spec("ag2-channels#2")
async def test_opening_leaves_invite_ack_opened(party):
    asker, expert = await party.silent("asker"), await party.silent("expert")
    channel = await asker.open(type="consulting", target=expert.passport.name, intent="triage")

    metadata = await channel.info()
    assert metadata.state.value == "active"
    assert metadata.pending_acks == [] and metadata.rejected_by == []
    assert [(p.agent_id, p.role.value, p.order) for p in metadata.participants] == [
        (asker.agent_id, "initiator", 0),
        (expert.agent_id, "respondent", 1),
    ]
    assert metadata.labels == {"intent": "triage"}
    log = await wal(asker, channel.channel_id)
    assert types(log) == OPENING
    assert [e.sender_id for e in log] == [asker.agent_id, expert.agent_id, asker.agent_id]
    assert log[1].causation_id == log[0].envelope_id


@spec("ag2-hub#92")
@spec("ag2-channels#10")
async def test_the_reply_closes_the_channel(party):
    asker = await party.silent("asker")
    expert = await party.agent("expert", "Because of Rayleigh scattering.")
    channel = await asker.open(type="consulting", target=expert.passport.name)
    question = await channel.send("Why is the sky blue?")

    metadata = await until_closed(asker, channel.channel_id)
    log = await wal(asker, channel.channel_id)
    assert (metadata.state.value, metadata.close_reason) == ("closed", "consulting_complete")
    assert types(log) == [*OPENING, EV_TEXT, EV_TEXT, EV_CHANNEL_CLOSED]
    assert turns(log) == [
        (asker.agent_id, "Why is the sky blue?"),
        (expert.agent_id, "Because of Rayleigh scattering."),
    ]
    assert log[4].causation_id == question
    assert log[5].event_data == {"reason": "consulting_complete", "channel_id": channel.channel_id}
    assert script(expert).prompts == ["Why is the sky blue?"]


@spec("ag2-hub#96")
async def test_a_creator_may_send_sleep_and_then_wait(party):
    asker = await party.silent("asker")
    expert = await party.agent("expert", "42")
    channel = await asker.open(type="consulting", target=expert.passport.name)
    await channel.send("The answer?")
    await until_closed(asker, channel.channel_id)
    await asyncio.sleep(0.2)  # the sleep of the statement

    got = []
    while not got or got[-1].event_type != EV_CHANNEL_CLOSED:
        got.append(
            await asker.wait_for_channel_event(channel_id=channel.channel_id, predicate=lambda e: True, timeout=5)
        )
    assert types(got) == ["ag2.channel.opened", EV_TEXT, EV_CHANNEL_CLOSED]
    assert got[1].event_data == {"text": "42"}


@spec("ag2-channels#9")
async def test_the_respondent_may_not_begin(party):
    asker, expert = await party.silent("asker"), await party.silent("expert")
    channel = await asker.open(type="consulting", target=expert.passport.name)
    before = await wal(asker, channel.channel_id)
    with pytest.raises(ProtocolError, match="initiator"):
        await expert._hub_client.post_envelope(text_of(channel.channel_id, expert.agent_id, "me first"))
    assert await wal(asker, channel.channel_id) == before


@spec("ag2-channels#11", clause="after close any post is refused")
async def test_nothing_is_accepted_after_the_reply(party):
    asker = await party.silent("asker")
    expert = await party.agent("expert", "done")
    channel = await asker.open(type="consulting", target=expert.passport.name)
    await channel.send("?")
    await until_closed(asker, channel.channel_id)
    before = await wal(asker, channel.channel_id)
    for sender in (asker, expert):
        with pytest.raises(ProtocolError, match="closed"):
            await sender._hub_client.post_envelope(text_of(channel.channel_id, sender.agent_id, "more"))
    assert await wal(asker, channel.channel_id) == before


@pytest.mark.newest
@spec("ag2-channels#101", clause="delegate returns the reply, unknown target, self")
async def test_delegate_consults_another_agent(own_party):
    results = []

    def remember(messages):
        results.append(messages[-1])
        return "done"

    expert = await own_party.agent("expert", "Lisbon.")
    lead = await own_party.agent(
        "lead",
        call("delegate", target="functions." + own_party.name("expert"), prompt="Capital of Portugal?"),
        remember,
        call("delegate", target="nobody-" + str(own_party.tag), prompt="?"),
        remember,
        call("delegate", target=own_party.name("lead"), prompt="?"),
        remember,
    )
    boss = await own_party.silent("boss")
    channel = await boss.open(type="conversation", target=lead.passport.name)
    for n in range(3):
        await channel.send(f"go {n}")
        await boss.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=10
        )

    told = [str(r.results[0].result.parts[0].content) for r in results]
    assert told[0] == "Lisbon."
    assert "not found. Available targets:" in told[1]
    assert own_party.name("expert") in told[1] and own_party.name("lead") not in told[1]
    assert "cannot delegate to self" in told[2]
    opened = [m for m in await lead._hub_client.list_channels(agent_id=lead.agent_id, include_terminal=True)]
    consults = [m for m in opened if m.manifest.type == "consulting"]
    assert [m.close_reason for m in consults] == ["consulting_complete"]
    log = await wal(lead, consults[0].channel_id)
    assert [(e.sender_id, e.audience, e.depth) for e in log if e.event_type == EV_TEXT] == [
        (lead.agent_id, [expert.agent_id], 1),
        (expert.agent_id, None, 0),
    ]


@pytest.mark.parley
async def test_creator_and_invitee_on_one_connection(party):
    """AG2's own hub handles a connection's frames one by one and times out here."""
    both = party.client()
    asker = await party.silent("asker", on=both)
    expert = await party.agent("expert", "from the same socket", on=both)
    channel = await asker.open(type="consulting", target=expert.passport.name)
    await channel.send("?")
    metadata = await until_closed(asker, channel.channel_id)
    assert metadata.close_reason == "consulting_complete"
    assert [text for _, text in turns(await wal(asker, channel.channel_id))] == ["?", "from the same socket"]


@pytest.mark.parley
async def test_two_connections_open_to_each_other_at_once(party):
    a, b = await party.silent("a"), await party.silent("b")
    there, back = await asyncio.wait_for(
        asyncio.gather(
            a.open(type="conversation", target=b.passport.name),
            b.open(type="conversation", target=a.passport.name),
        ),
        timeout=10,
    )
    assert there.state.value == back.state.value == "active"
    assert there.channel_id != back.channel_id


@spec("ag2-channels#4")
async def test_a_rejecting_invitee_ends_it(party):
    asker = await party.silent("asker")
    refuser = await party.agent("refuser")

    async def reject(envelope):
        if envelope.event_type == "ag2.channel.invite":
            await refuser.send_envelope(
                envelope_of(envelope.channel_id, refuser.agent_id, "ag2.channel.invite.reject", {"reason": "busy"})
            )

    refuser.on_envelope(reject)
    with pytest.raises(ProtocolError, match="rejected"):
        await asker.open(type="consulting", target=refuser.passport.name)

    async def closed():
        listed = await asker._hub_client.list_channels(agent_id=asker.agent_id, include_terminal=True)
        return [m for m in listed if m.is_terminal()]

    (metadata,) = await eventually(closed)
    assert (metadata.state.value, metadata.close_reason) == ("closed", "invite_rejected")
    assert metadata.rejected_by == [refuser.agent_id] and metadata.pending_acks == []
