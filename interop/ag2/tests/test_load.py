"""Large channels and many clients."""

import asyncio

import pytest
from ag2 import Agent, Context
from ag2.network import EV_TEXT

from harness.model import Script, call
from harness.party import Party, envelope_of, script, text_of, turns, until_turns, wal

MIB = 1 << 20
CHUNK = "p" * (64 << 10)


@pytest.mark.parley
async def test_five_mib_of_task_progress_in_the_channel(party):
    """A full read_wal of this channel would break the client's 1 MiB frames;
    the client reads it three times a turn."""
    boss = await party.silent("boss")
    worker = await party.agent("worker", "still here", "and again")
    channel = await boss.open(type="conversation", target=worker.agent_id)
    sent = [
        await worker.send_envelope(
            envelope_of(channel.channel_id, worker.agent_id, "ag2.task.progress", {"n": n, "log": CHUNK}, task_id="t")
        )
        for n in range(80)
    ]
    assert len(sent) * len(CHUNK) >= 5 * MIB
    for n, words in enumerate(("are you there?", "and now?")):
        await channel.send(words)
        await until_turns(boss, channel.channel_id, 2 * n + 2)
    assert turns(await wal(boss, channel.channel_id)) == [
        (boss.agent_id, "are you there?"),
        (worker.agent_id, "still here"),
        (boss.agent_id, "and now?"),
        (worker.agent_id, "and again"),
    ]
    assert script(worker).prompts == ["are you there?", "and now?"]
    # Indexed reads leave nothing out.
    indexed = await boss._hub_client.read_wal(channel.channel_id, since=3, until=13)
    assert [e.envelope_id for e in indexed] == sent[:10]


@pytest.mark.parley
async def test_five_mib_of_progress_mirrored_from_a_turn(new_hub, anyio_backend):
    """The same by the task mirror of the client, on a hub that tells a channel everything."""
    hub = new_hub(settings={"ag2.mirror_tasks": "all"})
    party = Party(hub.url)

    async def crunch(context: Context) -> str:
        """Run a task that talks a lot."""
        async with agent.task("crunch", context=context) as task:
            for n in range(80):
                await task.progress({"log": CHUNK, "n": n})
        return "ok"

    boss = await party.silent("boss")
    agent = Agent(party.name("cruncher"), config=Script(call("crunch"), "crunched", "still here"), tools=[crunch])
    worker = await party.client().register(agent)
    channel = await boss.open(type="conversation", target=worker.agent_id)
    for n, words in enumerate(("crunch", "are you there?")):
        await channel.send(words)
        await until_turns(boss, channel.channel_id, 2 * n + 2)
    assert [text for _, text in turns(await wal(boss, channel.channel_id))] == [
        "crunch",
        "crunched",
        "are you there?",
        "still here",
    ]
    # invite, ack, opened, text; then started, 80 times progress, completed.
    hub_client = boss._hub_client
    mirrored = [
        e.event_type
        for at in range(4, 86)
        for e in await hub_client.read_wal(channel.channel_id, since=at, until=at + 1)
    ]
    assert mirrored == ["ag2.task.started", *["ag2.task.progress"] * 80, "ag2.task.completed"]
    await party.close()
    hub.kill()


async def test_two_hundred_clients_at_once(party):
    """A hundred pairs, each on connections of its own, talk at the same time."""
    pairs, exchanges = 100, 5
    clients = await asyncio.gather(*(party.silent(f"c{n}") for n in range(2 * pairs)))
    assert len({c.agent_id for c in clients}) == 2 * pairs

    for client in clients[pairs:]:

        async def echo(envelope, client=client, default=client._run_default_handler):
            if envelope.event_type == EV_TEXT:
                reply = text_of(envelope.channel_id, client.agent_id, "re: " + envelope.event_data["text"])
                reply.causation_id = envelope.envelope_id
                await client.send_envelope(reply)
            else:
                await default(envelope)

        client.on_envelope(echo)

    async def talk(n):
        asker, answerer = clients[n], clients[pairs + n]
        channel = await asker.open(type="conversation", target=answerer.passport.name)
        expected = []
        for k in range(exchanges):
            await channel.send(f"{n}.{k}")
            reply = await asker.wait_for_channel_event(
                channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=60
            )
            assert reply.event_data == {"text": f"re: {n}.{k}"}
            expected += [(asker.agent_id, f"{n}.{k}"), (answerer.agent_id, f"re: {n}.{k}")]
        assert turns(await wal(asker, channel.channel_id)) == expected

    await asyncio.gather(*(talk(n) for n in range(pairs)))


async def test_one_word_to_two_hundred(party):
    """One discussion of two hundred, on eight connections and more identities each."""
    hubs = [await party.client().open() for _ in range(8)]  # first use at once would open several sockets
    creator = await party.silent("creator")
    crowd = await asyncio.gather(*(party.silent(f"m{n}", on=hubs[n % 8]) for n in range(199)))
    channel = await creator.open(type="discussion", target=[c.agent_id for c in crowd])
    sent = await channel.send("hear, hear")

    async def hear(member):
        heard = await member.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=60
        )
        return heard.envelope_id

    assert set(await asyncio.gather(*(hear(m) for m in crowd))) == {sent}
    assert await crowd[0]._hub_client.can_send(channel.channel_id, crowd[0].agent_id)


@pytest.mark.parley  # AG2's own hub lists the oldest, all of which have ended
async def test_what_is_open_is_found_among_what_has_ended(party):
    """The client asks for four times as many as it wants, the oldest first, and
    drops the ended itself."""
    ada, bo = await party.silent("ada"), await party.silent("bo")
    for _ in range(9):
        await (await ada.open(type="conversation", target=bo.agent_id)).close()
    channel = await ada.open(type="conversation", target=bo.agent_id)
    for client in (ada, bo):
        found = await client._hub_client.list_channels(agent_id=client.agent_id, limit=2)
        assert [m.channel_id for m in found] == [channel.channel_id]
    everything = await ada._hub_client.list_channels(agent_id=ada.agent_id, include_terminal=True)
    assert len(everything) == 10 and everything[-1].channel_id == channel.channel_id
