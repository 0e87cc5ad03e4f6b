import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { EventReader, type ServerEvent } from "../src/lib/sse.ts";
import { seed } from "./rig.ts";

test("what the hub's own writer frames is read the same, wherever its bytes are cut", () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-streams-"));
  const streams = seed<{ wire: string | null; events: ServerEvent[] | null }[]>(folder, "streams", 2000);
  rmSync(folder, { recursive: true });
  for (const { wire, events } of streams) {
    const bytes = Buffer.from(wire ?? "", "base64");
    const wanted = events ?? [];
    const read = (pieces: Uint8Array[]) => {
      const reader = new EventReader();
      const text = new TextDecoder("utf-8", { ignoreBOM: true });
      return [...pieces.flatMap((p) => reader.push(text.decode(p, { stream: true }))), ...reader.push(text.decode())];
    };
    assert.deepEqual(read([bytes]), wanted, JSON.stringify(bytes.toString()));
    for (let cut = 1; cut < bytes.length; cut += Math.max(1, Math.floor(bytes.length / 40))) assert.deepEqual(read([bytes.subarray(0, cut), bytes.subarray(cut)]), wanted, `cut at ${cut}: ${JSON.stringify(bytes.toString())}`);
    assert.deepEqual(read([...bytes].map((b) => Uint8Array.of(b))), wanted, "byte by byte");
  }
});
