#!/usr/bin/env python3
"""An agent in a process of its own: peer.py URL NAME LINES-AS-JSON [--attach]

Says "ready AGENT_ID" once it is bound, answers with its lines, and ends when
its standard input does. With --attach it returns to a name the hub knows,
resumes what it owes, and says "resumed N" first.
"""

import asyncio
import json
import sys

import harness.beta  # noqa: F401, I001 (names the package that is imported next)
from ag2 import Agent
from ag2.network import HubClient, Passport, Resume
from ag2.network.transport import WsLink

from harness.model import Script


async def main(url: str, name: str, lines: str, *flags: str) -> None:
    agent, passport = Agent(name, config=Script(*json.loads(lines))), Passport(name=name)
    async with HubClient(WsLink(url)) as hub:
        if "--attach" in flags:
            client = await hub.attach(agent, name, passport=passport, resume=Resume(), since_envelope_id=None)
            print("resumed", await client.resume_pending_turns(), flush=True)
        else:
            client = await hub.register(agent, passport)
        print("ready", client.agent_id, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
