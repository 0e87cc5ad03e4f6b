// What stands between a browser and a hub, and a hub without a console.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { binary, closeAll, Hub, proxy } from "./rig.ts";

after(closeAll);

interface Finding { check: string; verdict: string; found: string; remedy: string }

/** What parley doctor says of streams at an address, once it says what is expected: a busy machine is slow now and then, a proxy always. */
async function doctor(url: string, expected: RegExp): Promise<Finding> {
  for (let n = 1; ; n++) {
    const found = await examined(url);
    if (expected.test(found.found) || n === 5) return found;
  }
}

async function examined(url: string): Promise<Finding> {
  const { stdout } = await promisify(execFile)(binary, ["doctor", "--hub", url, "-o", "json"]).catch((failed: { stdout: string }) => failed);
  const found = (JSON.parse(stdout) as { findings: Finding[] }).findings.find((f) => f.check === "stream");
  assert.ok(found, stdout);
  return found;
}

test("parley doctor tells what a proxy does to streams: nothing, holds them back, takes comments out", async () => {
  const hub = await new Hub().start();
  const plain = await proxy(hub, "/ops/parley");
  const fine = /^the first event and comments come at once; over HTTP\/1\.1 a browser opens six connections/;
  assert.match((await doctor(plain.url, fine)).found, fine);
  const empty = Buffer.alloc(0);
  const holding = await proxy(hub, "", (part) => (part.includes("event: ") || part.includes(": a watch") ? empty : part));
  const held = await doctor(holding.url, /./);
  assert.match(held.found, /^no event came within 1s/);
  assert.match(held.remedy, /proxy_buffering off/);
  const tidy = await proxy(hub, "", (part) => Buffer.from(part.toString().replaceAll(/^:.*\n\n?/gm, "")));
  const without = /comments are taken out on the way/;
  assert.match((await doctor(tidy.url, without)).found, without);
  for (const between of [plain, holding, tidy]) between.close();
  await hub.end();
});

test("a hub that was built without the console says so, and one that has it switched off says that", async () => {
  for (const [hub, why] of [[new Hub([], `${binary}-noconsole`), "this parley was built without the console (build tag noconsole)"], [new Hub(["--set", "console.enabled=false"]), "the console is switched off (console.enabled)"]] as const) {
    await hub.start();
    for (const path of ["/console/", "/console"]) {
      const answer = await fetch(hub.url + path, { headers: { Accept: "text/html" } });
      assert.equal(answer.status, 404);
      assert.equal(((await answer.json()) as { detail: string }).detail, why);
    }
    await hub.call("GET", "summary"); // the rest is there
    await hub.end();
  }
});
