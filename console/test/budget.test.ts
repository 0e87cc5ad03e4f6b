import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

const dist = join(import.meta.dirname, "../dist");
const packed = (names: string[]) => names.reduce((sum, name) => sum + gzipSync(readFileSync(join(dist, name)), { level: 9 }).length, 0);

test("what a browser loads is small", () => {
  const first = packed(["index.html", "app.js", "app.css"]);
  const all = packed(readdirSync(dist));
  assert.ok(first <= 90_000, `the first screen takes ${first} bytes`);
  assert.ok(all <= 160_000, `everything takes ${all} bytes`);
});

test("rows are visible after four requests on a warm cache, and few elements show 1,000 channels", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  for (let n = 0; n < 1000; n += 50) await Promise.all(Array.from({ length: 50 }, (_, i) => hub.call("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, labels: { title: `Talk ${n + i}` } })));
  const page = await open(hub, "#/channels");
  await page.getByRole("link", { name: /^Talk/ }).first().waitFor();
  const asked: string[] = [];
  // Addresses with ?v= are immutable: the browser does not ask for them again. The
  // PUT names the rows to the stream, once they are there.
  page.on("request", (r) => { if (!r.url().includes("?v=") && r.method() !== "PUT") asked.push(new URL(r.url()).pathname); });
  await page.reload();
  await page.getByRole("link", { name: /^Talk/ }).first().waitFor();
  assert.ok(asked.length <= 4, asked.join("\n"));
  assert.ok((await page.locator("*").count()) <= 2500);
  await done(page);
  await hub.end();
});
