#!/usr/bin/env python3
"""Serve AG2's own hub on its disk store over WebSocket, for comparison.

    serve_upstream.py --port 7441 --data ./upstream-data [--api-key NAME=TOKEN …]

The first line on standard output is the URL. The store is AG2's
DiskKnowledgeStore: plain appends, no fsync.
"""

import argparse
import asyncio
import contextlib
import logging
import signal

from ag2.knowledge import DiskKnowledgeStore
from ag2.network import ApiKeyAuth, AuthRegistry, Hub, NoAuth
from ag2.network.transport import serve_ws


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=7441, help="0 takes a free one")
    parser.add_argument("--data", default="upstream-data", help="folder of the store")
    parser.add_argument("--api-key", action="append", default=[], metavar="NAME=TOKEN")
    return parser.parse_args()


async def serve(options: argparse.Namespace) -> None:
    keys = dict(pair.split("=", 1) for pair in options.api_key)
    hub = await Hub.open(DiskKnowledgeStore(options.data), auth=AuthRegistry([NoAuth(), ApiKeyAuth(keys)]))
    stopped = asyncio.Event()
    for sig in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sig, stopped.set)
    async with serve_ws(hub, options.host, options.port) as server:
        host, port = server.sockets[0].getsockname()[:2]
        print(f"ws://{host}:{port}", flush=True)
        await stopped.wait()
    await hub.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(arguments()))
