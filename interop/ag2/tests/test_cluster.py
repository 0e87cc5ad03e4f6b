"""The node that serves dies, three times; the client knows one address and notices a
lost connection, nothing else."""

import asyncio
import pathlib

import pytest
from ag2 import Agent
from ag2.network import EV_PACKET, EV_TEXT, AgentTarget, FromSpeaker, Passport, Resume, Transition, TransitionGraph

from harness.cluster import Cluster
from harness.party import Party, eventually, quiet_log, turns

from test_crash import Endless

NAMES = ["ada", "bo", "cy"]


def record_turns(client, accepted):
    """Remember what the hub acknowledged: the id of each accepted turn."""
    post = client.post_envelope

    async def recording(envelope):
        envelope_id = await post(envelope)
        if envelope.event_type in (EV_TEXT, EV_PACKET):
            accepted.append(envelope_id)
        return envelope_id

    client.post_envelope = recording
    return client


@pytest.fixture
def cluster(tmp_path: pathlib.Path):
    cluster = Cluster(tmp_path / "cluster").start()
    yield cluster
    cluster.stop()


async def wait_for(accepted: list, more: int, what: str) -> None:
    goal = len(accepted) + more

    async def reached() -> bool:
        return len(accepted) >= goal

    await eventually(reached, what=what)


@pytest.mark.parley
async def test_a_workflow_resumes_across_three_takeovers(cluster, anyio_backend):
    accepted, models = [], {}

    async def join(party, name):
        client = record_turns(party.client(rpc_timeout=3), accepted)  # a dead socket is given up soon
        agent = Agent(name, config=models.setdefault(name, Endless(name)))
        return await client.attach(agent, name, passport=Passport(name=name), resume=Resume())

    party = Party(cluster.url)
    clients = [await join(party, n) for n in NAMES]
    ids = [c.agent_id for c in clients]
    graph = TransitionGraph(
        initial_speaker=ids[0],
        transitions=[
            Transition(when=FromSpeaker(ids[0]), then=AgentTarget(ids[1])),
            Transition(when=FromSpeaker(ids[1]), then=AgentTarget(ids[2])),
        ],
        default_target=AgentTarget(ids[0]),
    )
    channel = await clients[0].open(type="workflow", target=NAMES[1:], knobs={"graph": graph.to_dict()})
    await channel.send("ada-0")

    loop = asyncio.get_running_loop()
    for round_ in range(1, 4):
        await wait_for(accepted, 5, f"five more turns in round {round_}")
        await loop.run_in_executor(None, cluster.kill)  # turns and posts are in flight
        await party.close()
        party = Party(cluster.url)
        clients = [await join(party, n) for n in NAMES]
        assert [c.agent_id for c in clients] == ids
        await asyncio.gather(*(c.resume_pending_turns() for c in clients))
    assert len(cluster.takeovers) == 3
    assert all(old != new for old, new in cluster.takeovers)

    await wait_for(accepted, 5, "five more turns at the end")
    for model in models.values():
        model.stopped = True

    log = await quiet_log(clients[0], channel.channel_id)
    said = turns(log)
    stored = [e.envelope_id for e in log]
    assert len(said) >= 20
    assert [who for who, _ in said] == [ids[n % 3] for n in range(len(said))], "the workflow was broken"
    assert len({words for _, words in said}) == len(said), "something was doubled"
    assert [i for i in accepted if i not in stored] == [], "something answered for was lost"
    assert len(accepted) == len(set(accepted))
    await party.close()
