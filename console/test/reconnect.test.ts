import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { closeAll, done, Hub, open, parley, proxy, stopClock } from "./rig.ts";

after(closeAll);

const soon = ["--set", "limits.keep_alive=1s"];

async function talk(hub: Hub): Promise<string> {
  const ada = await hub.agent("ada");
  await hub.agent("hana", "human");
  const graph = { initial_speaker: ada, transitions: [], default_target: { name: "round_robin", args: {} } };
  const { channel_id } = await hub.call<{ channel_id: string }>("POST", "channels", {
    creator: "ada", type: "workflow", participants: ["hana"], required_acks: 0, labels: { title: "Flow" },
    knobs: { graph, expectations: [{ name: "turn_within", params: { seconds: 3600 }, on_violation: "audit" }] },
  });
  return channel_id;
}

const note = (hub: Hub, id: string, text: string) => hub.call("POST", `channels/${id}/events`, { sender: "ada", event_type: "app.note", event_data: { text } });

/** Every sequence that the timeline shows, from its end to its beginning. */
async function all(page: Page): Promise<number[]> {
  const seen = new Set<number>();
  const list = page.locator('[role="feed"]');
  for (let last = -1; ; ) {
    const shown = await page.locator("article[data-sequence]").evaluateAll((rows) => rows.map((r) => Number((r as HTMLElement).dataset.sequence)));
    assert.equal(new Set(shown).size, shown.length, `one is shown twice: ${shown}`);
    for (const n of shown) seen.add(n);
    const top = await list.evaluate((node) => {
      const before = node.scrollTop;
      node.scrollTop = before - node.clientHeight / 2;
      return before;
    });
    if (top <= 0 && top === last) break;
    last = top;
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  }
  return [...seen].sort((a, b) => a - b);
}

test("a hub is killed while 200 events a second come: clocks stand still, and every event is shown once", async () => {
  const hub = await new Hub(soon).start();
  const id = await talk(hub);
  const page = await open(hub, `#/channels/${id}`);
  await page.getByText(/Due in/).waitFor();
  await page.locator("header").getByText("● live").waitFor();
  // 200 a second, as many at a time as are late, and what is refused meanwhile is dropped.
  let [sent, kept, answered] = [0, 0, 0];
  const begun = Date.now();
  const writer = setInterval(() => {
    for (const due = ((Date.now() - begun) / 1000) * 200; sent < due; sent++) void note(hub, id, `note ${sent}`).then(() => kept++, () => {}).finally(() => answered++);
  }, 20);
  await page.locator("article[data-sequence]", { hasText: /note \d/ }).nth(5).waitFor();
  await hub.kill();
  await page.getByText(/Not connected since/).waitFor({ timeout: 120_000 });
  await page.locator("header").getByText(/as of/).waitFor();
  const clock = () => page.locator(".whose").innerText();
  const stood = await clock();
  // Two answers of the countdown later the page's own clocks are where they were.
  const left = () => page.locator(".bar.warn").first().innerText();
  for (let n = 0, before = await left(); n < 2; n++) {
    await page.waitForFunction((was) => (document.querySelector<HTMLElement>(".bar.warn")?.innerText ?? was) !== was, before);
    before = await left();
  }
  assert.equal(await clock(), stood, "clocks stand still");
  await hub.start();
  await page.getByText(/Not connected since/).waitFor({ state: "detached" });
  for (const before = kept; kept < before + 200; ) await new Promise((resolve) => setImmediate(resolve));
  clearInterval(writer);
  while (answered < sent) await new Promise((resolve) => setImmediate(resolve));
  await note(hub, id, "the last one");
  await page.getByText("the last one").waitFor();
  const { length } = await hub.call<{ length: number }>("GET", `channels/${id}`);
  const shown = await all(page);
  assert.deepEqual(shown, Array.from({ length: shown.length }, (_, i) => length - shown.length + 1 + i), "each once, none left out");
  assert.ok(shown.length >= kept, `${shown.length} shown of ${kept}`);
  await done(page);
  await hub.end();
});

test("a proxy that keeps a dead stream open: silence ends it, and nothing is lost", async () => {
  const hub = await new Hub(soon).start();
  const id = await talk(hub);
  const between = await proxy(hub);
  const page = await open(hub, `#/channels/${id}`, { through: between.url });
  await note(hub, id, "before");
  await page.getByText("before", { exact: true }).waitFor();
  between.silence();
  await note(hub, id, "meanwhile");
  await page.getByText("meanwhile", { exact: true }).waitFor();
  await note(hub, id, "afterwards");
  await page.getByText("afterwards", { exact: true }).waitFor();
  assert.equal(await page.getByText("meanwhile", { exact: true }).count(), 1);
  await page.context().close();
  assert.deepEqual((page as any).complaints, []);
  between.close();
  await hub.end();
});

test("by its own clock, the page says within 2 × keep_alive that nothing comes any more", async () => {
  const hub = await new Hub(["--set", "limits.keep_alive=20s"]).start();
  const id = await talk(hub);
  const between = await proxy(hub);
  const page = await open(hub, `#/channels/${id}`, { through: between.url });
  const live = page.locator("header").getByText("● live");
  await live.waitFor();
  await stopClock(page);
  const shows = async (words: string) => { while ((await page.getByText(words, { exact: true }).count()) === 0) await page.clock.runFor(16); };
  // Whatever comes begins the silence anew, by this clock.
  await note(hub, id, "the last sign");
  await shows("the last sign");
  await page.evaluate(() => {
    const look = () => { if (/Not connected since/.test(document.body.textContent ?? "")) (window as any).said ??= Date.now(); };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  between.silence();
  // What was on its way has come when the page was answered through the proxy, by the clock that stands still.
  for (let n = 0; n < 3; n++) await page.evaluate(async () => void (await (await fetch("../v1/session")).text()));
  const silent = await page.evaluate(() => Date.now());
  await note(hub, id, "meanwhile");
  const said = () => page.evaluate(() => (window as any).said as number | undefined);
  await page.clock.runFor(30_000);
  assert.equal(await said(), undefined, "not yet: it may only be quiet");
  await page.clock.runFor(10_000);
  await page.waitForFunction(() => (window as any).said);
  assert.ok((await said())! - silent <= 40_000, `it is said after ${(await said())! - silent} ms`);
  // It tries again by itself, and has what came meanwhile.
  await shows("meanwhile");
  await live.waitFor();
  await page.context().close();
  assert.deepEqual((page as any).complaints, []);
  between.close();
  await hub.end();
});

test("the page tells how many events came while it was not connected, and tries at once when the network returns", async () => {
  const hub = await new Hub().start();
  const id = await talk(hub);
  const page = await open(hub, `#/channels/${id}`);
  await page.locator("header").getByText("● live").waitFor();
  await note(hub, id, "before");
  await page.getByText("before", { exact: true }).waitFor();
  await stopClock(page);
  await hub.kill();
  await page.getByText(/Not connected since/).waitFor();
  await hub.start();
  // It does not try again before its clock goes on.
  for (let n = 1; n <= 12; n++) await note(hub, id, `away ${n}`);
  await page.clock.runFor(1000);
  await page.getByText("Connected. 12 events while away.").waitFor();
  await page.evaluate(() => {
    const said = ((window as any).said = new Set<string>());
    const look = () => { const found = /Connected\..*?while away\./.exec(document.body.textContent ?? ""); if (found) said.add(found[0]); };
    look();
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  // What comes from now on did not come meanwhile.
  await note(hub, id, "now");
  while ((await page.getByText("now", { exact: true }).count()) === 0) await page.clock.runFor(16);
  await page.clock.runFor(3000);
  await page.getByText(/while away/).waitFor({ state: "detached" });
  assert.deepEqual(await page.evaluate(() => [...(window as any).said]), ["Connected. 12 events while away."]);
  assert.equal(await page.getByText(/^away \d+$/).count(), 12);
  // When the network returns it tries at once, without waiting for its clock.
  await hub.kill();
  await page.getByText(/Not connected since/).waitFor();
  await hub.start();
  await note(hub, id, "one more");
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await page.getByText("Connected. 1 event while away.").waitFor();
  await done(page);
  await hub.end();
});

test("a stream that is not answered within 3 s says that a browser opens six connections", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  const page = await open(hub, "#/agents");
  await page.locator("header").getByText("● live").waitFor();
  await stopClock(page);
  let free = () => {};
  const held = new Promise<void>((resolve) => (free = resolve));
  const asked = new Promise<void>((resolve) => void page.route("**/v1/watch?*", async (route) => { resolve(); await held; await route.continue(); }));
  await page.reload();
  await page.getByRole("link", { name: /ada/ }).waitFor(); // everything else answers
  await asked;
  const says = page.getByText("A browser opens six connections to a plain-HTTP hub");
  await page.clock.runFor(2900);
  assert.equal(await says.count(), 0);
  await page.clock.runFor(200);
  await says.waitFor();
  assert.equal(await page.locator("header").getByText("● live").count(), 0);
  free();
  await says.waitFor({ state: "detached" });
  await page.locator("header").getByText("● live").waitFor();
  await done(page);
  await hub.end();
});

test("a browser whose clock is an hour wrong shows right ages", async () => {
  const hub = await new Hub().start();
  const id = await talk(hub);
  // Whoever waits for an answer is not late: it is asked elsewhere.
  const { channel_id: other } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["hana"], required_acks: 0 });
  await hub.call("POST", `channels/${other}/requests`, { asked_by: "ada", kind: "approval", title: "May I?", choices: [{ id: "approve" }, { id: "deny" }] });
  for (const hours of [-1, 1]) {
    const page = await open(hub, "#/inbox");
    await page.locator("header").getByText("● live").waitFor();
    await page.clock.install({ time: Date.now() + hours * 3_600_000 });
    await page.reload();
    await page.locator("header").getByText("● live").waitFor();
    assert.ok(Math.abs((await page.evaluate(() => Date.now())) - Date.now() - hours * 3_600_000) < 600_000, "the clock of the page is wrong");
    await page.getByText(/Waiting for (\d min )?\d+ s\./).waitFor();
    await page.goto(`${hub.url}/console/#/channels/${id}`);
    await page.locator(".whose", { hasText: /Due in 5\d min/ }).waitFor();
    await done(page);
  }
  await hub.end();
});

test("after a restore the timeline says what is gone, and goes on", async () => {
  const hub = await new Hub(soon).start();
  const id = await talk(hub);
  await note(hub, id, "before the backup");
  const kept = mkdtempSync(join(tmpdir(), "parley-backup-"));
  parley("backup", join(kept, "backup"), "--hub", hub.url);
  for (const n of [1, 2, 3]) await note(hub, id, `lost ${n}`);
  const page = await open(hub, `#/channels/${id}`);
  await page.getByText("lost 3").waitFor();
  await hub.kill();
  parley("restore", join(kept, "backup"), "--data", join(kept, "data"));
  hub.moveTo(join(kept, "data"));
  await hub.start();
  await page.locator("[data-gap]", { hasText: "History was restored here; 3 events are gone." }).waitFor();
  assert.equal(await page.getByText(/lost \d/).count(), 0);
  await note(hub, id, "after the restore");
  await page.getByText("after the restore").waitFor();
  await page.getByRole("button", { name: "Load from the start" }).click();
  await page.locator("[data-gap]").waitFor({ state: "detached" });
  await page.getByText("before the backup").waitFor();
  await done(page);
  await hub.end();
  rmSync(kept, { recursive: true, force: true });
});
