"""What is hidden from a participant does not change what its client folds."""

import pytest
from ag2.network import (
    EV_CONTEXT_SET,
    EV_TEXT,
    AgentTarget,
    ContextEquals,
    FromSpeaker,
    RevertToInitiatorTarget,
    Transition,
    TransitionGraph,
)

from harness.party import Party, envelope_of, text_of, wal

pytestmark = pytest.mark.parley  # AG2's own hub shows whispers to every participant


@pytest.fixture(scope="module")
def keyed_hub(new_hub):
    """With a key, being on this machine is not enough to see everything."""
    return new_hub(keys_for=("somebody",))


@pytest.fixture
async def three(keyed_hub, anyio_backend):
    party = Party(keyed_hub.url)
    yield [await party.silent(n) for n in ("a", "b", "c")]
    await party.close()


async def folds(clients, channel_id):
    return [await c._hub_client.adapter_state(channel_id) for c in clients]


async def test_a_discussion_with_a_whisper(three):
    a, b, c = three
    channel = (await a.open(type="discussion", target=[b.agent_id, c.agent_id])).channel_id
    await a.send_envelope(text_of(channel, a.agent_id, "for b", audience=[b.agent_id]))
    await b.send_envelope(text_of(channel, b.agent_id, "for all"))
    for state in await folds(three, channel):
        assert (state.expected_next_speaker, state.turn_count) == (c.agent_id, 2)
    for who in three:
        shown = [e.event_data for e in await wal(who, channel) if e.event_type == EV_TEXT]
        assert shown == [{} if who is c else {"text": "for b"}, {"text": "for all"}]


async def test_a_workflow_whose_texts_and_context_are_whispers(three):
    a, b, c = three
    graph = TransitionGraph(
        initial_speaker=b.agent_id,
        transitions=[
            Transition(when=ContextEquals("n", 1.0), then=AgentTarget(c.agent_id), priority=5),
            Transition(when=FromSpeaker(c.agent_id), then=RevertToInitiatorTarget(), priority=-1),
        ],
        default_target=AgentTarget(b.agent_id),
        max_turns=12,
    )
    opened = await a.open(
        type="workflow",
        target=[b.passport.name, c.passport.name],
        knobs={"graph": graph.to_dict(), "context_vars": {"n": 0}},
    )
    channel = opened.channel_id
    await a.send_envelope(
        envelope_of(channel, a.agent_id, EV_CONTEXT_SET, {"set": {"n": 1}}, audience=[b.agent_id])
    )
    speakers = []
    for n in range(5):
        states = await folds(three, channel)
        assert states[0] == states[1] == states[2]
        speaker = next(p for p in three if p.agent_id == states[0].expected_next_speaker)
        listener = next(p for p in three if p is not speaker)
        speakers.append(speaker)
        await speaker.send_envelope(text_of(channel, speaker.agent_id, str(n), audience=[listener.agent_id]))
    assert speakers == [b, c, a, c, a]
    hidden = [e for e in await wal(b, channel) if e.event_type == EV_TEXT and e.event_data == {}]
    assert len(hidden) == 2  # what c said to a
