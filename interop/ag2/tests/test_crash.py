"""The hub is killed with SIGKILL; nothing that was answered is lost or doubled."""

import asyncio
import contextlib
import itertools

import pytest
from ag2 import Agent
from ag2.network import (
    EV_CONTEXT_SET,
    EV_TEXT,
    AgentTarget,
    ContextEquals,
    Passport,
    Resume,
    Transition,
    TransitionGraph,
)

from harness.conformance import spec
from harness.model import Script
from harness.party import Party, envelope_of, eventually, mute, quiet_log, text_of, turns, types, until_closed, wal


class Endless(Script):
    """Says NAME-1, NAME-2, …, each once, until it is stopped."""

    def __init__(self, name):
        super().__init__()
        self.lines = (f"{name}-{n}" for n in itertools.count(1))
        self.stopped = False

    async def __call__(self, messages, context, **options):
        self.turns = ["" if self.stopped else next(self.lines)]
        return await super().__call__(messages, context, **options)


def record_posts(client, accepted):
    """Remember what the hub acknowledged: (id, words) of each accepted text."""
    post = client.post_envelope

    async def recording(envelope):
        envelope_id = await post(envelope)
        if envelope.event_type == EV_TEXT:
            accepted.append((envelope_id, envelope.event_data["text"]))
        return envelope_id

    client.post_envelope = recording
    return client


@spec("ag2-channels#27")
async def test_a_restart_restores_the_rotation(own_hub, own_party):
    ada, bo, cy = everyone = [await own_party.silent(n) for n in ("ada", "bo", "cy")]
    channel = await ada.open(type="discussion", target=[bo.agent_id, cy.agent_id])
    await channel.send("a1")
    await bo.send_envelope(text_of(channel.channel_id, bo.agent_id, "b1"))
    before = await wal(cy, channel.channel_id)
    state = await cy._hub_client.adapter_state(channel.channel_id)
    metadata = await cy._hub_client.get_channel(channel.channel_id)
    await own_hub.restart()

    back = [await own_party.silent(n, attach=True) for n in ("ada", "bo", "cy")]
    assert [b.agent_id for b in back] == [e.agent_id for e in everyone]
    assert await wal(back[0], channel.channel_id) == before
    assert await back[0]._hub_client.get_channel(channel.channel_id) == metadata
    again = await back[0]._hub_client.adapter_state(channel.channel_id)
    assert again == state
    assert (again.expected_next_speaker, again.last_speaker_id, again.turn_count) == (cy.agent_id, bo.agent_id, 2)
    assert again.participant_order == [e.agent_id for e in everyone]
    can = [await b._hub_client.can_send(channel.channel_id, b.agent_id) for b in back]
    assert can == [False, False, True]


@spec("ag2-hub#83", clause="cursors survive a restart")
async def test_what_was_acknowledged_does_not_come_again(own_hub, own_party):
    """A hub that is stopped keeps the cursors; one that is killed may deliver
    again what its clients acknowledged last."""
    ada, bo = await own_party.silent("ada"), await own_party.silent("bo")
    channel = await ada.open(type="conversation", target=bo.agent_id)
    await channel.send("one")
    await bo.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=5
    )
    await bo._hub_client.get_agent(bo.agent_id)  # behind the receipt on the same socket
    await own_hub.restart(gently=True)

    ada = await own_party.silent("ada", attach=True)
    two = await ada.send_envelope(text_of(channel.channel_id, ada.agent_id, "two"))
    bo = await own_party.silent("bo", attach=True)
    first = await bo.wait_for_channel_event(channel_id=channel.channel_id, predicate=lambda e: True, timeout=5)
    assert first.envelope_id == two


async def test_killed_three_times_in_the_middle_of_a_discussion(own_hub):
    accepted, models = [], {}
    names = ["ada", "bo", "cy"]

    async def join(party, name):
        client = record_posts(party.client(rpc_timeout=3), accepted)  # a dead socket is given up soon
        agent = Agent(name, config=models.setdefault(name, Endless(name)))
        return await client.attach(agent, name, passport=Passport(name=name), resume=Resume())

    party = Party(own_hub.url)
    clients = [await join(party, n) for n in names]
    ids = [c.agent_id for c in clients]
    channel = await clients[0].open(type="discussion", target=names[1:])
    await channel.send("ada-0")

    for round_ in range(1, 4):
        goal = len(accepted) + 5

        async def went_on(goal=goal):
            return len(accepted) >= goal

        await eventually(went_on, what=f"five more turns in round {round_}")
        await own_hub.restart()  # turns and posts are in flight
        await party.close()
        party = Party(own_hub.url)
        clients = [await join(party, n) for n in names]
        assert [c.agent_id for c in clients] == ids
        await asyncio.gather(*(c.resume_pending_turns() for c in clients))

    goal = len(accepted) + 5

    async def finished():
        return len(accepted) >= goal

    await eventually(finished, what="five more turns at the end")
    for model in models.values():
        model.stopped = True

    log = await quiet_log(clients[0], channel.channel_id)
    said = turns(log)
    texts = [e for e in log if e.event_type == EV_TEXT]
    assert len(said) >= 20
    assert [who for who, _ in said] == [ids[n % 3] for n in range(len(said))], "the rotation was broken"
    assert len({words for _, words in said}) == len(said), "something was doubled"
    in_log = {e.envelope_id: e.event_data["text"] for e in texts}
    assert {i: words for i, words in accepted if in_log.get(i) != words} == {}, "something answered for was lost"
    assert len(accepted) == len({i for i, _ in accepted})
    assert [e.envelope_id for e in texts] == sorted(e.envelope_id for e in texts)
    await party.close()


async def test_pipelined_posts_when_the_hub_is_killed(own_hub):
    """Each post that was answered is in the log once, and the reader that
    reconnects has received every one of them in the end."""
    party = Party(own_hub.url)
    writer_client = party.client(rpc_timeout=5)
    writer, reader = await party.silent("writer", on=writer_client), await party.silent("reader")
    channel = await writer.open(type="conversation", target=reader.passport.name)
    answered, heard = {}, []

    async def hear(envelope):
        if envelope.event_type == EV_TEXT:
            heard.append(envelope.envelope_id)

    reader.on_envelope(hear)

    async def post(n):
        with contextlib.suppress(Exception):
            answered[n] = await channel.send(str(n))

    posts = [asyncio.create_task(post(n)) for n in range(400)]

    async def some():
        return len(answered) >= 60

    await eventually(some)
    await own_hub.restart()
    await party.close()
    await asyncio.gather(*posts)

    party = Party(own_hub.url)
    party.tag = int(writer.passport.name.rsplit("-", 1)[1])
    back = await party.silent("writer", attach=True)
    returned = await party.client().attach(Agent(reader.passport.name, config=Script()), reader.passport.name)
    returned.on_envelope(hear)
    log = [e for e in await wal(back, channel.channel_id) if e.event_type == EV_TEXT]
    by_id = {e.envelope_id: e.event_data["text"] for e in log}
    assert len(by_id) == len(log)
    assert len({e.event_data["text"] for e in log}) == len(log), "a post was doubled"
    assert {n: i for n, i in answered.items() if by_id.get(i) != str(n)} == {}, "an answered post was lost"

    async def caught_up():
        queued = [e.envelope_id for e in returned.ensure_channel_inbox(channel.channel_id)._queue]
        return set(by_id) <= {*heard, *queued}

    await eventually(caught_up, what="the reader had every envelope")
    await party.close()


@spec("ag2-channels#13", clause="a restart after the question")
async def test_a_consultation_survives_between_question_and_reply(own_hub, own_party):
    asker, expert = await own_party.silent("asker"), await own_party.silent("expert")
    channel = await asker.open(type="consulting", target=expert.passport.name)
    await channel.send("?")
    await own_hub.restart()

    asker = await own_party.silent("asker", attach=True)
    state = await asker._hub_client.adapter_state(channel.channel_id)
    assert (state.initiator_sent, state.respondent_replied) == (True, False)
    assert not await asker._hub_client.can_send(channel.channel_id, asker.agent_id)
    expert = await own_party.agent("expert", "!", attach=True)
    assert await expert.resume_pending_turns() == 1
    metadata = await until_closed(asker, channel.channel_id)
    assert metadata.close_reason == "consulting_complete"
    log = await wal(asker, channel.channel_id)
    assert turns(log) == [(asker.agent_id, "?"), (expert.agent_id, "!")]
    assert types(log)[-1] == "ag2.channel.closed"


@spec("ag2-channels#75")
@spec("ag2-channels#65")
async def test_a_workflow_survives(own_hub, own_party):
    a, b, c = [await own_party.silent(n) for n in ("a", "b", "c")]
    graph = TransitionGraph(
        initial_speaker=a.agent_id,
        transitions=[Transition(when=ContextEquals("to", "c"), then=AgentTarget(c.agent_id))],
        default_target=AgentTarget(b.agent_id),
    )
    channel = await a.open(
        type="workflow", target=[b.agent_id, c.agent_id], knobs={"graph": graph.to_dict(), "context_vars": {"k": 1}}
    )
    await a.send_envelope(envelope_of(channel.channel_id, a.agent_id, EV_CONTEXT_SET, {"set": {"to": "c"}}))
    await channel.send("go")
    before = await a._hub_client.adapter_state(channel.channel_id)
    await own_hub.restart()
    a, b, c = back = [await own_party.silent(n, attach=True) for n in ("a", "b", "c")]
    after = await a._hub_client.adapter_state(channel.channel_id)
    assert after == before
    assert after.context_vars == {"k": 1, "to": "c"}
    assert (after.expected_next_speaker, after.last_speaker_id, after.turn_count) == (c.agent_id, a.agent_id, 1)
    assert [await p._hub_client.can_send(channel.channel_id, p.agent_id) for p in back] == [False, False, True]


@pytest.mark.parley
@spec("ag2-hub#84", clause="a restart rebuilds it")
@spec("ag2-channels#128", clause="rebuilt on restart")
async def test_causation_is_known_after_a_restart(own_hub, own_party):
    ada, bo = await own_party.silent("ada"), await own_party.silent("bo")
    channel = await ada.open(type="conversation", target=bo.agent_id)
    first = await channel.send("one")
    reply = await bo.send_envelope(text_of(channel.channel_id, bo.agent_id, "two", causation_id=first))
    await own_hub.restart()
    bo = mute(await own_party.agent("bo", attach=True))
    found = await bo._hub_client.find_envelope_by_causation(
        channel.channel_id, sender_id=bo.agent_id, causation_id=first
    )
    assert found == (await wal(bo, channel.channel_id))[-1]
    assert found.envelope_id == reply
