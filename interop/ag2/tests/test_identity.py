"""Identities over the wire: discovery, duplicates, resumes, rules, skills."""

import asyncio

import pytest
from ag2 import Agent
from ag2.network import (
    AccessBlock,
    AccessDeniedError,
    CostProfile,
    InboxBlock,
    LimitsBlock,
    NetworkError,
    NotFoundError,
    Passport,
    ProtocolError,
    Resume,
    ResumeExample,
    Rule,
)

from harness.conformance import spec
from harness.party import eventually, text_of, wal


@spec("ag2-hub#19")
async def test_found_from_another_connection(party):
    capability = party.name("ocr")
    known = await party.silent("known", resume=Resume(claimed_capabilities=[capability], summary="Reads scans."))
    other = party.client()
    assert (await other.get_agent(party.name("known"))).agent_id == known.agent_id
    assert [p.agent_id for p in await other.list_agents(capability=capability)] == [known.agent_id]
    assert [p.agent_id for p in await other.list_agents(capability=party.name("nothing"))] == []


@spec("ag2-hub#20")
async def test_a_missing_agent_is_not_found(party):
    lone = party.client()
    with pytest.raises(NotFoundError):
        await lone.get_agent(party.name("nobody"))
    with pytest.raises(NotFoundError):
        await lone.get_resume("0" * 32)


@spec("ag2-hub#26")
async def test_a_name_is_taken_once(party):
    first = await party.silent("twin")
    with pytest.raises(ProtocolError, match="already registered"):
        await party.silent("twin", resume=Resume(summary="another"))
    listed = await first._hub_client.list_agents(limit=10_000)
    assert [p.agent_id for p in listed if p.name == party.name("twin")] == [first.agent_id]
    assert (await first._hub_client.get_resume(first.agent_id)).summary == ""


@spec("ag2-hub#27")
async def test_three_at_once_and_one_wins(party):
    outcomes = await asyncio.gather(*(party.silent("racer") for _ in range(3)), return_exceptions=True)
    losers = [o for o in outcomes if isinstance(o, ProtocolError)]
    (winner,) = [o for o in outcomes if not isinstance(o, Exception)]
    assert len(losers) == 2
    assert (await party.client().get_agent(party.name("racer"))).agent_id == winner.agent_id


@spec("ag2-hub#28")
async def test_unregister_and_register_again(party):
    first, peer = await party.silent("again"), await party.silent("peer")
    channel = await peer.open(type="conversation", target=first.agent_id)
    await first.unregister()
    with pytest.raises(NotFoundError):
        await party.client().get_agent(party.name("again"))
    with pytest.raises(NetworkError):
        await first._hub_client.post_envelope(text_of(channel.channel_id, first.agent_id, "a ghost"))
    second = await party.silent("again")
    assert second.agent_id != first.agent_id
    assert (await party.client().get_agent(party.name("again"))).agent_id == second.agent_id
    await channel.send("to nobody")
    assert [e.event_data for e in (await wal(peer, channel.channel_id))[-1:]] == [{"text": "to nobody"}]


@spec("ag2-hub#35")
@spec("ag2-hub#34", clause="register_human stores kind human")
async def test_kinds_are_told_apart(party):
    bot, person = await party.silent("bot"), await party.human("person")
    other = party.client()

    async def mine(**filters):
        listed = await other.list_agents(limit=10_000, **filters)
        return [p.agent_id for p in listed if p.agent_id in (bot.agent_id, person.agent_id)]

    assert await mine(kind="agent") == [bot.agent_id]
    assert await mine(kind="human") == [person.agent_id]
    assert await mine() == [bot.agent_id, person.agent_id]
    assert ((await other.get_agent(person.agent_id)).kind, (await other.get_agent(bot.agent_id)).kind) == (
        "human",
        None,
    )


async def test_a_passport_comes_back_as_it_was_sent(party):
    name = party.name("full")
    sent = Passport(
        name=name,
        owner="ops",
        provider="anthropic",
        model="m-1",
        cost=CostProfile(input_per_mtok=1.5, output_per_mtok=7, latency_tier="fast"),
        region="eu",
        kind="agent",
        version=3,
    )
    registered = await party.client().register(Agent(name), Passport.from_dict(sent.to_dict()), Resume())
    got = await party.client().get_agent(registered.agent_id)
    assert (got.agent_id, got.created_at != "") == (registered.agent_id, True)
    got.agent_id, got.created_at = None, ""
    assert got == sent


@spec("ag2-hub#45")
@spec("ag2-hub#39", clause="visible to capability search at once, dropping a claim removes it, last_updated")
async def test_a_resume_changes(party):
    one, two = party.name("cap-one"), party.name("cap-two")
    agent = await party.silent("worker", resume=Resume(claimed_capabilities=[one]))
    other = party.client()
    assert agent.resume.last_updated == ""
    await agent.set_resume(Resume(claimed_capabilities=[two], summary="now two"))
    assert [p.agent_id for p in await other.list_agents(capability=two)] == [agent.agent_id]
    assert await other.list_agents(capability=one) == []
    assert agent.resume.last_updated != "" and agent.resume.version == 2
    for title in ("first", "second"):
        await agent.add_example(ResumeExample(title=title, outcome="completed", note="n"))
    got = await other.get_resume(agent.agent_id)
    assert [e.title for e in got.examples] == ["first", "second"]
    assert (got.claimed_capabilities, got.summary, got.version) == ([two], "now two", 4)


@spec("ag2-hub#46")
async def test_a_query_matches_the_summary(party):
    word = f"zebra{party.tag}x"
    agent = await party.silent("finder", resume=Resume(summary=f"Counts {word}s."))
    other = party.client()
    assert [p.agent_id for p in await other.list_agents(query=word.upper())] == [agent.agent_id]
    assert await other.list_agents(query=word + "q") == []


@spec("ag2-hub#36", clause="default rule, rule of an unknown agent")
async def test_rules(party):
    agent = await party.silent("ruled")
    other = party.client()
    assert await other.get_rule(agent.agent_id) == Rule()
    with pytest.raises(NotFoundError):
        await other.get_rule("0" * 32)
    await agent.set_rule(Rule(access=AccessBlock(outbound_to=["friend-*"]), limits=LimitsBlock(delegation_depth=1)))
    got = await other.get_rule(agent.agent_id)
    assert (got.version, got.access.outbound_to, got.limits.delegation_depth) == (2, ["friend-*"], 1)
    assert got.limits.inbox.max_pending == 1000


async def test_skills(party):
    agent = await party.silent("skilled", skill_md="---\nname: s\n---\n# é\n")
    other = party.client()
    assert await other.get_skill(agent.agent_id) == "---\nname: s\n---\n# é\n"
    await agent.set_skill(None)
    assert await other.get_skill(agent.agent_id) is None
    assert await other.get_skill("0" * 32) is None


@spec("ag2-hub#50")
async def test_an_invitee_that_blocks_the_creator(party):
    creator = await party.silent("creator")
    shy = await party.silent("shy", rule=Rule(access=AccessBlock(inbound_from=["friend-*"])))
    with pytest.raises(AccessDeniedError, match="does not accept inbound"):
        await creator.open(type="conversation", target=shy.agent_id)
    assert await creator._hub_client.list_channels(agent_id=creator.agent_id, include_terminal=True) == []


@spec("ag2-hub#60")
async def test_outbound_globs(party):
    sender = await party.silent("sender", rule=Rule(access=AccessBlock(outbound_to=["friend-*"])))
    friend, foe = await party.silent("friend-a"), await party.silent("foe")
    opener = await party.silent("opener")
    channel = await opener.open(type="discussion", target=[sender.agent_id, friend.agent_id, foe.agent_id])
    await channel.send("your turn")
    with pytest.raises(AccessDeniedError):
        await sender.send_envelope(text_of(channel.channel_id, sender.agent_id, "psst", audience=[foe.agent_id]))
    sent = await sender.send_envelope(
        text_of(channel.channel_id, sender.agent_id, "psst", audience=[friend.agent_id, sender.agent_id])
    )
    assert (await wal(friend, channel.channel_id))[-1].envelope_id == sent


@spec("ag2-hub#63")
async def test_delegation_depth(party):
    sender = await party.silent("sender", rule=Rule(limits=LimitsBlock(delegation_depth=2)))
    free = await party.silent("free", rule=Rule(limits=LimitsBlock(delegation_depth=0)))
    channel = await sender.open(type="conversation", target=free.agent_id)
    await channel.send("at the cap", depth=2)
    with pytest.raises(AccessDeniedError, match="delegation_depth"):
        await channel.send("over it", depth=3)
    await free.send_envelope(text_of(channel.channel_id, free.agent_id, "no cap", depth=99))
    assert [e.depth for e in (await wal(free, channel.channel_id))[-2:]] == [2, 99]


@spec("ag2-hub#64", clause="the client's receipts free no place")
async def test_a_full_inbox(party):
    sender = await party.silent("sender")
    reader = await party.silent("reader", rule=Rule(limits=LimitsBlock(inbox=InboxBlock(max_pending=3))))
    channel = await sender.open(type="conversation", target=reader.agent_id)
    read = []
    reader.on_envelope(lambda envelope: read.append(envelope) or asyncio.sleep(0))
    for n in range(3):
        await channel.send(str(n))
        await eventually(lambda: asyncio.sleep(0, len(read) > n), what="the text is read")
        await reader._hub_client.get_agent(reader.agent_id)  # and acknowledged: receipts keep their place
    before = len(await wal(sender, channel.channel_id))
    with pytest.raises(NetworkError, match="inbox at capacity"):
        await channel.send("one more")
    assert len(await wal(sender, channel.channel_id)) == before
    await reader.send_envelope(text_of(channel.channel_id, reader.agent_id, "thanks"))
    await channel.send("one more")


@spec("ag2-hub#49")
@spec("ag2-channels#6")
async def test_channels_that_cannot_be(party):
    creator, other = await party.silent("creator"), await party.silent("other")
    hub, me = creator._hub_client, creator.agent_id

    async def create(type_, participants):
        await hub.create_channel(creator_id=me, manifest_type=type_, participants=participants)

    with pytest.raises(NotFoundError):
        await create("conversation", ["0" * 32])
    with pytest.raises(ProtocolError, match="listed twice"):
        await create("discussion", [other.agent_id, other.agent_id])
    with pytest.raises(ProtocolError, match="at least one"):
        await create("conversation", [])
    with pytest.raises(NotFoundError, match="no adapter"):
        await create("seance", [other.agent_id])
    assert await hub.list_channels(agent_id=me, include_terminal=True) == []
