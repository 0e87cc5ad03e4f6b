"""What a user of AG2's Python client sees of a hub: posts, turns, memory, start.

    measure.py [--hub parley|upstream] [--channels 1000] [--seconds 3]

Starts a hub in a process of its own and prints one line for each figure. The
client is the same for both hubs and is most of the time that a post takes.
"""

import argparse
import asyncio
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness.hubs import Parley, Upstream  # noqa: E402
from harness.party import Party, until_turns  # noqa: E402


def resident(pid: int) -> str:
    """Memory that a process has, and how much of it is not the program itself."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    whole, own = (int(status.split(name)[1].split()[0]) / 1024 for name in ("VmRSS:", "RssAnon:"))
    return f"{whole:.0f} MiB, {own:.0f} without the program"


async def posts(party: Party, channels: int, seconds: float) -> float:
    """Posts a second over one connection, one at a time in each channel."""
    ann, ben = await party.silent(f"ann{channels}"), await party.silent(f"ben{channels}")
    rooms = [await ann.open(type="conversation", target=ben.agent_id) for _ in range(channels)]
    end, count = time.monotonic() + seconds, 0

    async def talk(room) -> None:
        nonlocal count
        while time.monotonic() < end:
            await room.send("a line of talk, as long as people make them")
            count += 1

    await asyncio.gather(*map(talk, rooms))
    return count / seconds


async def turn(party: Party, rounds: int) -> float:
    """Milliseconds from a question to an agent's answer in the log, p50."""
    asker = await party.silent("asker")
    answerer = await party.agent("answerer", *["an answer"] * rounds)
    room = await asker.open(type="conversation", target=answerer.agent_id)
    times = []
    for n in range(rounds):
        began = time.monotonic()
        await room.send("a question")
        await until_turns(asker, room.channel_id, 2 * n + 2)
        times.append(time.monotonic() - began)
    return statistics.median(times) * 1000


async def fill(party: Party, channels: int) -> float:
    """Seconds to open so many channels and say one thing in each."""
    ann, ben = await party.silent("opener"), await party.silent("joiner")
    began = time.monotonic()

    async def some(n: int) -> None:
        for _ in range(n):
            room = await ann.open(type="conversation", target=ben.agent_id)
            await room.send("hello")

    await asyncio.gather(*[some(channels // 16) for _ in range(16)])
    return time.monotonic() - began


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hub", choices=["parley", "upstream"], default="parley")
    parser.add_argument("--channels", type=int, default=1000, help="open channels for memory and start")
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    make = {"parley": Parley, "upstream": Upstream}[options.hub]
    settings = {"limits.inbox": "1000000"} if make is Parley else None
    with tempfile.TemporaryDirectory() as folder:
        hub = make(pathlib.Path(folder) / "data", settings=settings).start()
        try:
            party = Party(hub.url)
            print(f"memory, no channels: {resident(hub.process.pid)}", flush=True)
            for n in (1, 16, 64):
                print(f"posts, {n} channels: {await posts(party, n, options.seconds):.0f}/s", flush=True)
            print(f"a turn of an agent, p50: {await turn(party, 20):.1f} ms", flush=True)
            print(f"open {options.channels} channels: {await fill(party, options.channels):.1f} s", flush=True)
            print(f"memory, {options.channels} channels: {resident(hub.process.pid)}", flush=True)
            await party.close()
            hub.stop()
            began = time.monotonic()
            hub.start()
            print(f"start with them: {time.monotonic() - began:.2f} s; memory then {resident(hub.process.pid)}", flush=True)
        finally:
            hub.stop()


if __name__ == "__main__":
    asyncio.run(main())
