"""A supervisor's text in a workflow is ordered at the packet's boundary and is not a turn.

AG2's own hub refuses such a send at once, so these run on ours only.
"""

import asyncio

import pytest
from ag2.network import AgentTarget, FromSpeaker, ProtocolError, Transition, TransitionGraph

from harness.party import eventually, text_of, turns, types, until_turns, wal

pytestmark = pytest.mark.parley


async def cast(party, worker):
    creator, watcher = await party.silent("creator"), await party.silent("watcher")
    boss = await party.human("boss")
    graph = TransitionGraph(
        initial_speaker=creator.agent_id,
        transitions=[Transition(when=FromSpeaker(creator.agent_id), then=AgentTarget(worker.agent_id))],
        default_target=AgentTarget(creator.agent_id),
    )
    channel = await creator.open(
        type="workflow",
        target=[worker.agent_id, watcher.agent_id, boss.agent_id],
        knobs={"graph": graph.to_dict(), "supervisors": [boss.agent_id]},
    )
    return creator, watcher, boss, channel


async def test_it_waits_for_the_round_in_flight(party):
    thinking, go_on = asyncio.Event(), asyncio.Event()

    async def think(_messages):
        thinking.set()
        await go_on.wait()
        return "the packet"

    worker = await party.agent("worker", think)
    creator, watcher, boss, channel = await cast(party, worker)
    await channel.send("work on this")
    await asyncio.wait_for(thinking.wait(), 10)

    injected = asyncio.create_task(boss.send(channel.channel_id, "mind the budget"))
    with pytest.raises(ProtocolError, match="expects"):
        await watcher.send_envelope(text_of(channel.channel_id, watcher.agent_id, "me too"))
    done, _ = await asyncio.wait([injected], timeout=0.5)
    assert done == set(), "the injection did not wait for the packet"
    assert [text for _, text in turns(await wal(boss, channel.channel_id))] == ["work on this"]

    go_on.set()
    envelope_id = await asyncio.wait_for(injected, 10)
    log = await until_turns(boss, channel.channel_id, 3)
    assert turns(log) == [
        (creator.agent_id, "work on this"),
        (boss.agent_id, "mind the budget"),
        (worker.agent_id, "the packet"),
    ]
    assert log[-2].envelope_id == envelope_id

    # The packet alone decided: the creator is expected, because of the packet.
    (turn,) = await creator._hub_client.pending_turns_for(creator.agent_id)
    assert turn.triggering_envelope_id == log[-1].envelope_id
    state = await creator._hub_client.adapter_state(channel.channel_id)
    assert state.expected_next_speaker == creator.agent_id

    # Everyone but the one whose turn it became is told; that one reads the log.
    async def told(who):
        inbox = list(who.ensure_channel_inbox(channel.channel_id)._queue)
        return [e.sender_id for e in inbox if e.event_type in ("ag2.msg.text", "ag2.packet")]

    async def heard():
        return len(await told(watcher)) == 3 and len(await told(creator)) >= 1

    await eventually(heard)
    assert await told(watcher) == [creator.agent_id, boss.agent_id, worker.agent_id]
    assert await told(creator) == [worker.agent_id]


async def test_with_nothing_in_flight_it_is_taken_at_once_and_is_no_turn(party):
    worker = await party.silent("worker")
    creator, _watcher, boss, channel = await cast(party, worker)
    await channel.send("work on this")

    async def acknowledged():
        try:
            return await asyncio.wait_for(boss.send(channel.channel_id, "carry on"), 1)
        except asyncio.TimeoutError:
            return None

    await eventually(acknowledged)
    log = await wal(boss, channel.channel_id)
    assert turns(log)[:2] == [(creator.agent_id, "work on this"), (boss.agent_id, "carry on")]
    assert await worker._hub_client.can_send(channel.channel_id, worker.agent_id)
    assert not await creator._hub_client.can_send(channel.channel_id, creator.agent_id)
    (turn,) = await worker._hub_client.pending_turns_for(worker.agent_id)
    assert turn.triggering_envelope_id == log[types(log).index("ag2.msg.text")].envelope_id
