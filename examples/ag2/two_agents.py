#!/usr/bin/env python3
"""Two AG2 agents talk through a Parley hub. No model is needed.

    pip install ag2 'websockets>=14,<17'
    parley serve                       # in another terminal
    python two_agents.py               # or: python two_agents.py ws://host:port

Run it as often as you like: the agents keep their names and identities, and
each run opens a channel of its own. For real agents put your model's config
where Lines(…) stands.
"""

import asyncio
import os
import sys

from ag2 import Agent
from ag2.config import ModelConfig
from ag2.events import ModelMessage, ModelResponse
from ag2.network import EV_CHANNEL_CLOSED, EV_PACKET, EV_TEXT, HubClient, Passport, Resume, TransitionGraph
from ag2.network.transport import WsLink

URL = "ws://127.0.0.1:7440"


class Lines(ModelConfig):
    """Stands where a model would: says its lines, one a turn."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def copy(self):
        return self

    def create(self):
        return self

    async def __call__(self, messages, context, **options) -> ModelResponse:
        message = ModelMessage(self.lines.pop(0))
        await context.send(message)
        return ModelResponse(message)


async def join(url: str, name: str, model: ModelConfig):
    """Connect, and attach to the name if the hub knows it; else register it.

    since_envelope_id=None skips what an earlier run may have left unread."""
    hub = HubClient(WsLink(url))
    client = await hub.attach(
        Agent(name, config=model), name, passport=Passport(name=name), resume=Resume(), since_envelope_id=None
    )
    return hub, client


async def main(url: str) -> None:
    guide_hub, guide = await join(url, "guide", Lines("Which would you take?", "Then the hill it is."))
    scout_hub, scout = await join(url, "scout", Lines("Two: by the river, and up the hill.", "The hill. Fewer bears."))

    graph = TransitionGraph.round_robin([guide.agent_id, scout.agent_id], max_turns=5)
    channel = await guide.open(type="workflow", target="scout", knobs={"graph": graph.to_dict()})
    await channel.send("How many paths are there?")

    # From here on they answer each other by themselves, until the fifth turn.
    for client in (guide, scout):
        await client.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED, timeout=30
        )
    names = {guide.agent_id: "guide", scout.agent_id: "scout"}
    for envelope in await guide_hub.read_wal(channel.channel_id):
        if envelope.event_type in (EV_TEXT, EV_PACKET):
            print(f"{names[envelope.sender_id]}: {envelope.event_data.get('text') or envelope.event_data.get('body')}")
    closed = await scout_hub.get_channel(channel.channel_id)
    print(f"({closed.state.value}: {closed.close_reason})")

    await scout_hub.close()
    await guide_hub.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PARLEY_URL", URL)))
