"""Leaving and returning: attach, replay, resume, and no second reply."""

import asyncio

import pytest
from ag2 import Agent
from ag2.network import EV_TEXT

from harness.conformance import spec
from harness.model import Script
from harness.party import envelope_of, eventually, mute, script, text_of, turns, types, until_turns, wal


async def drain(client, channel_id, last):
    """What reached the client, up to the type named."""
    got = []
    while not got or got[-1].event_type != last:
        got.append(await client.wait_for_channel_event(channel_id=channel_id, predicate=lambda e: True, timeout=5))
    return got


@spec("ag2-hub#86")
async def test_attach_moves_the_binding_and_leaves_the_rest(party):
    old = party.client()
    mover, stayer = await party.silent("mover", on=old), await party.silent("stayer", on=old)
    peer = await party.silent("peer")
    to_mover = await peer.open(type="conversation", target=mover.passport.name)
    to_stayer = await peer.open(type="conversation", target=stayer.passport.name)
    await drain(mover, to_mover.channel_id, "ag2.channel.opened")

    moved = await party.silent("mover", attach=True)
    assert moved.agent_id == mover.agent_id
    await to_mover.send("where are you?")
    await to_stayer.send("and you?")
    heard = await moved.wait_for_channel_event(
        channel_id=to_mover.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=5
    )
    assert heard.event_data == {"text": "where are you?"}
    assert types(await drain(stayer, to_stayer.channel_id, EV_TEXT))[-1] == EV_TEXT
    assert mover.ensure_channel_inbox(to_mover.channel_id).empty()
    assert await old.get_agent(stayer.agent_id)


@spec("ag2-hub#87")
async def test_attach_to_an_unknown_name_registers(party):
    name = party.name("fresh")
    client = party.client()
    with pytest.raises(ValueError, match="passport and resume are required"):
        await client.attach(Agent(name, config=Script()), name)
    fresh = await party.agent("fresh", attach=True)
    assert (await fresh._hub_client.get_agent(name)).agent_id == fresh.agent_id
    again = await party.agent("fresh", attach=True)
    assert again.agent_id == fresh.agent_id


@spec("ag2-hub#89")
@spec("ag2-channels#129")
async def test_resume_fires_the_trigger_once(party):
    ada, bo = await party.silent("ada"), await party.agent("bo")
    channel = await ada.open(type="discussion", target=bo.passport.name)
    assert await ada.resume_pending_turns() == 0, "a fresh discussion has no trigger"
    await party.leave(bo)
    trigger = await channel.send("a1")

    name = party.name("bo")
    hub_client = party.client()
    back = await hub_client.attach(Agent(name, config=Script("b1", "b1 again")), name, since_envelope_id=None)
    assert await back.resume_pending_turns() == 1
    log = await wal(ada, channel.channel_id)
    assert turns(log) == [(ada.agent_id, "a1"), (bo.agent_id, "b1")]
    assert log[-1].causation_id == trigger
    assert await back.resume_pending_turns() == 0
    assert await wal(ada, channel.channel_id) == log
    assert len(script(back).seen) == 1


@spec("ag2-hub#85")
@spec("ag2-channels#125")
async def test_an_answered_trigger_is_not_answered_again(party):
    ada = await party.silent("ada")
    bo = await party.agent("bo", "b1", "b1 again")
    channel = await ada.open(type="conversation", target=bo.passport.name)
    await channel.send("a1")
    log = await until_turns(ada, channel.channel_id, 2)
    trigger = next(e for e in log if e.event_type == EV_TEXT)
    await bo.receive(trigger)
    assert await wal(ada, channel.channel_id) == log
    assert len(script(bo).seen) == 1


@spec("ag2-hub#90")
async def test_task_events_missed_are_replayed(party):
    ada, bo = await party.silent("ada"), await party.silent("bo")
    channel = await ada.open(type="conversation", target=bo.passport.name)
    await drain(bo, channel.channel_id, "ag2.channel.opened")
    await party.leave(bo)
    sent = [
        await ada.send_envelope(
            envelope_of(channel.channel_id, ada.agent_id, f"ag2.task.{kind}", {"task_id": "t"}, task_id="t")
        )
        for kind in ("started", "completed")
    ]
    back = await party.silent("bo", attach=True)
    got = await drain(back, channel.channel_id, "ag2.task.completed")
    missed = [e for e in got if e.event_type.startswith("ag2.task.")]
    assert [(e.event_type, e.envelope_id) for e in missed] == [
        ("ag2.task.started", sent[0]),
        ("ag2.task.completed", sent[1]),
    ]


@spec("ag2-hub#12")
@spec("ag2-channels#127")
async def test_a_raising_handler_does_not_stop_later_deliveries(party):
    ada, bo = await party.silent("ada"), await party.agent("bo")
    default, heard = bo._run_default_handler, []

    async def picky(envelope):
        if envelope.event_type == EV_TEXT:
            heard.append(envelope.event_data["text"])
            if envelope.event_data["text"] == "bad":
                raise RuntimeError("not this one")
        else:
            await default(envelope)

    bo.on_envelope(picky)
    channel = await ada.open(type="conversation", target=bo.passport.name)
    for words in ("good", "bad", "good again"):
        await channel.send(words)

    async def all_heard():
        return len(heard) == 3

    await eventually(all_heard)
    assert sorted(heard) == ["bad", "good", "good again"]


async def test_a_nacked_envelope_is_replayed(party):
    ada, bo = await party.silent("ada"), await party.agent("bo")
    default, refused = bo._run_default_handler, []

    async def refuse(envelope):
        if envelope.event_type == EV_TEXT:
            refused.append(envelope.envelope_id)
            raise RuntimeError("no")
        await default(envelope)

    bo.on_envelope(refuse)
    channel = await ada.open(type="conversation", target=bo.passport.name)
    sent = await channel.send("again, please")

    async def nacked():
        return refused == [sent]

    await eventually(nacked)
    await party.leave(bo)
    back = await party.silent("bo", attach=True)
    heard = await back.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=5
    )
    assert heard.envelope_id == sent


@spec("ag2-channels#126", clause="a failing model: the channel lives, the next send works")
async def test_a_crashing_turn_is_reported_and_the_channel_lives(party):
    ada = await party.silent("ada")
    bo = await party.agent("bo", RuntimeError("model is down"), "back again")
    reported = []
    report = bo._hub_client.report_turn_failure

    async def spy(**options):
        await report(**options)
        reported.append((options["envelope_id"], str(options["exc"])))

    bo._hub_client.report_turn_failure = spy
    channel = await ada.open(type="conversation", target=bo.passport.name)
    first = await channel.send("one")

    async def told():
        return reported == [(first, "model is down")]

    await eventually(told, what="the failure was reported and accepted")
    await channel.send("two")
    log = await until_turns(ada, channel.channel_id, 3)
    assert turns(log) == [(ada.agent_id, "one"), (ada.agent_id, "two"), (bo.agent_id, "back again")]


@spec("ag2-hub#84", clause="found, unseen, null causation, closed")
@spec("ag2-channels#128", clause="found, unknown, null causation, pruned on close")
async def test_causation_lookup(party):
    ada, bo = await party.silent("ada"), await party.silent("bo")
    channel = await ada.open(type="conversation", target=bo.agent_id)
    first = await channel.send("one")
    reply = await bo.send_envelope(text_of(channel.channel_id, bo.agent_id, "two", causation_id=first))

    async def find(sender, causation):
        return await ada._hub_client.find_envelope_by_causation(
            channel.channel_id, sender_id=sender.agent_id, causation_id=causation
        )

    found = await find(bo, first)
    assert found == (await wal(ada, channel.channel_id))[-1]
    assert found.envelope_id == reply
    assert await find(ada, first) is None
    assert await find(bo, "unseen") is None
    assert await find(ada, "") is None
    await channel.close()
    assert await find(bo, first) is None


class Gates:
    """Turns that run until the test lets them speak."""

    def __init__(self, *words):
        self.open = {word: asyncio.Event() for word in words}

    def turn(self, word):
        async def speak(_):
            await self.open[word].wait()
            return word

        return speak

    def let(self, word):
        self.open[word].set()


@pytest.mark.parley  # AG2's own hub takes both answers
async def test_a_turn_that_runs_twice_is_answered_once(party):
    """Attach replays the trigger and resume_pending_turns fires it as well; the
    slower answer comes when the turn has come round again."""
    ada, bo = await party.silent("ada"), await party.agent("bo")
    channel = await ada.open(type="discussion", target=bo.passport.name)
    await party.leave(bo)
    await channel.send("a1")

    gates = Gates("b1", "b1 again", "b2")
    bo = await party.agent("bo", *map(gates.turn, gates.open), attach=True)
    resumed = asyncio.create_task(bo.resume_pending_turns())

    async def both_run():
        return len(script(bo).seen) == 2

    await eventually(both_run)
    gates.let("b1")
    await until_turns(ada, channel.channel_id, 2)
    second = await channel.send("a2")
    gates.let("b1 again")
    assert await resumed == 1
    gates.let("b2")
    log = await until_turns(ada, channel.channel_id, 4)
    assert [words for _, words in turns(log)] == ["a1", "b1", "a2", "b2"]
    assert log[-1].causation_id == second


async def test_two_processes_of_one_identity_answer_once(party):
    """A new client attaches while the old one handles what was replayed."""
    gates = Gates("old", "new")
    ada, old = await party.silent("ada"), await party.agent("bo", gates.turn("old"))
    channel = await ada.open(type="conversation", target=old.passport.name)
    await channel.send("?")

    async def runs(client):
        return script(client).seen

    await eventually(lambda: runs(old))
    new = await party.agent("bo", gates.turn("new"), attach=True)
    await eventually(lambda: runs(new))
    gates.let("old")
    await old._hub_client.get_agent(ada.agent_id)
    gates.let("new")
    await until_turns(ada, channel.channel_id, 2)
    # What the old one posted was judged before the answer to its next request.
    await old._hub_client.get_agent(ada.agent_id)
    assert [words for _, words in turns(await wal(ada, channel.channel_id))] == ["?", "new"]


async def test_attach_skips_what_was_acknowledged(party):
    ada, bo = await party.silent("ada"), await party.silent("bo")
    channel = await ada.open(type="conversation", target=bo.passport.name)
    seen = await channel.send("seen")
    await drain(bo, channel.channel_id, EV_TEXT)
    # An answer to a later request on the same socket proves that the receipt was read.
    await bo._hub_client.get_agent(bo.agent_id)
    await party.leave(bo)
    missed = await channel.send("missed")
    back = await party.client().attach(Agent(party.name("bo"), config=Script()), party.name("bo"))
    mute(back)
    got = await drain(back, channel.channel_id, EV_TEXT)
    assert [e.envelope_id for e in got if e.event_type == EV_TEXT] == [missed]
    assert seen not in [e.envelope_id for e in got]
