"""People: they auto-ack, answer, open, take turns, leave and come back."""

import asyncio

import pytest
from ag2.network import EV_TEXT, Passport, ProtocolError

from harness.conformance import spec
from harness.party import eventually, script, text_of, turns, types, until_closed, wal


@spec("ag2-hub#129", clause="auto-acks invites, its reply closes a consulting channel")
@spec("ag2-channels#14", clause="a human respondent's single reply closes the channel")
async def test_a_human_is_consulted(party):
    asker, human = await party.silent("asker"), await party.human("ines")
    channel = await asker.open(type="consulting", target=human.passport.name)
    assert (await wal(asker, channel.channel_id))[1].sender_id == human.agent_id
    await channel.send("Approve?")
    question = await human.next_envelope(predicate=lambda e: e.event_type == EV_TEXT, timeout=5)
    await human.send(channel.channel_id, "Approved.", causation_id=question.envelope_id)
    metadata = await until_closed(asker, channel.channel_id)
    assert metadata.close_reason == "consulting_complete"
    assert turns(await wal(asker, channel.channel_id)) == [
        (asker.agent_id, "Approve?"),
        (human.agent_id, "Approved."),
    ]


@spec("ag2-channels#14", clause="a human initiator receives the agent's reply")
async def test_a_human_asks_an_agent(party):
    human, expert = await party.human("ines"), await party.agent("expert", "Tuesday.")
    channel = await human.open(type="consulting", target=expert.passport.name)
    await channel.send("When?")
    reply = await human.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=5
    )
    assert (reply.sender_id, reply.event_data) == (expert.agent_id, {"text": "Tuesday."})


@spec("ag2-hub#129", clause="it can open channels and take a round-robin turn")
async def test_a_human_takes_a_turn_in_a_discussion(party):
    human, bot = await party.human("ines"), await party.agent("bot", "b1", "b2")
    other = await party.agent("other", "o1", "o2")
    channel = await human.open(type="discussion", target=[bot.agent_id, other.agent_id])
    await human.send(channel.channel_id, "h1")

    def my_turn(envelope):
        return envelope.sender_id == other.agent_id and envelope.event_type == EV_TEXT

    await human.next_envelope(predicate=my_turn, timeout=5)
    await human.send(channel.channel_id, "h2")
    await human.next_envelope(predicate=my_turn, timeout=5)
    assert [text for _, text in turns(await wal(human, channel.channel_id))] == ["h1", "b1", "o1", "h2", "b2", "o2"]


@spec("ag2-channels#132", clause="a callback's failure does not starve the queues")
async def test_a_failing_callback_starves_nobody(party):
    asker, human = await party.silent("asker"), await party.human("ines")
    seen = []

    async def broken(_envelope):
        raise RuntimeError("a bug in the page")

    async def working(envelope):
        seen.append(envelope.event_type)

    human.on_envelope(broken)
    human.on_envelope(working)
    channel = await asker.open(type="conversation", target=human.passport.name)
    await channel.send("one")
    await channel.send("two")
    got = [await human.next_envelope(predicate=lambda e: e.event_type == EV_TEXT, timeout=5) for _ in range(2)]
    assert [e.event_data["text"] for e in got] == ["one", "two"]

    async def called():
        return seen.count(EV_TEXT) == 2

    await eventually(called)


@pytest.mark.parley
async def test_a_human_leaves_and_comes_back(party):
    """AG2's own hub refuses the name; ours lets the person reconnect."""
    bot = await party.agent("bot", "b1", "b2", "b3")
    human = await party.human("ines")
    channel = await human.open(type="conversation", target=bot.passport.name)
    await human.send(channel.channel_id, "h1")
    await human.next_envelope(predicate=lambda e: e.event_type == EV_TEXT, timeout=5)
    await party.leave(human)

    # The agent continues while she is away; nothing is lost.
    missed = await bot.send_envelope(text_of(channel.channel_id, bot.agent_id, "are you there?"))

    async def back():
        try:
            return await party.human("ines")
        except Exception:  # the hub has not yet seen the old connection end
            return None

    again = await eventually(back)
    assert again.agent_id == human.agent_id
    assert again.passport.kind == "human"
    log = await wal(again, channel.channel_id)
    assert turns(log) == [
        (human.agent_id, "h1"),
        (bot.agent_id, "b1"),
        (bot.agent_id, "are you there?"),
    ]
    assert log[-1].envelope_id == missed
    await again.send(channel.channel_id, "h2")
    reply = await again.next_envelope(
        predicate=lambda e: e.event_type == EV_TEXT and e.event_data["text"] == "b2", timeout=5
    )
    assert reply.sender_id == bot.agent_id
    assert [text for _, text in turns(await wal(again, channel.channel_id))] == [
        "h1",
        "b1",
        "are you there?",
        "h2",
        "b2",
    ]
    assert script(bot).prompts == ["h1", "h2"]
    listed = await again.hub_client.list_agents(kind="human", limit=1000)
    assert [p.agent_id for p in listed if p.name == party.name("ines")] == [human.agent_id]


@pytest.mark.parley
async def test_a_human_who_comes_back_finds_the_invitation(party):
    """A channel was opened to her while she was away, and she accepts in time."""
    asker, human = await party.silent("asker"), await party.human("ines")
    await party.leave(human)
    opening = asyncio.create_task(asker.open(type="consulting", target=human.agent_id))

    async def waits():
        return await asker._hub_client.list_channels(agent_id=asker.agent_id)

    await eventually(waits)

    async def back():
        try:
            return await party.human("ines")
        except ProtocolError:  # the hub has not yet seen the old connection end
            return None

    again = await eventually(back)
    channel = await asyncio.wait_for(opening, 10)
    await channel.send("?")
    asked = await again.next_envelope(predicate=lambda e: e.event_type == EV_TEXT, timeout=5)
    await again.send(channel.channel_id, "!", causation_id=asked.envelope_id)
    assert (await until_closed(asker, channel.channel_id)).close_reason == "consulting_complete"


@pytest.mark.parley
async def test_a_connected_humans_name_is_not_given_away(party):
    human = await party.human("ines")
    with pytest.raises(Exception, match="already registered"):
        await party.client().register_human(Passport(name=human.passport.name))
    bot = await party.agent("bot", "still here")
    channel = await human.open(type="consulting", target=bot.passport.name)
    await channel.send("?")
    reply = await human.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=5
    )
    assert reply.event_data == {"text": "still here"}
    assert types([reply]) == [EV_TEXT]
