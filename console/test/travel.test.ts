import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeAll, done, Hub, open, parley, stopClock } from "./rig.ts";

after(closeAll);

interface Fold { sequence: number; state: string; next: string; context: Record<string, string>; turns: number }
interface Told { channel_id: string; length: number; graph: unknown; script: unknown; turns: number[]; folds: Fold[] }

test("200 random moments of a random workflow are what a fold in Go makes of them", async () => {
  const hub = new Hub();
  const told = hub.seed<Told>("workflow", 300, 200);
  assert.equal(told.folds.length, 200);
  await hub.start();
  const page = await open(hub, `#/channels/${told.channel_id}?at=0&state`);
  // The moments are gone through in the page itself, by their addresses.
  const go = (hash: string) => page.evaluate((h) => void (location.hash = h), hash);
  for (const fold of told.folds) {
    await go(`#/channels/${told.channel_id}?at=${fold.sequence}&state`);
    await page.getByText(`After event ${fold.sequence}: ${fold.state}.`).waitFor();
    await page.getByText(`As of event ${fold.sequence} of ${told.length}.`).waitFor();
    const shown = await page.locator("[data-variable]").evaluateAll((rows) => Object.fromEntries(rows.map((r) => [(r as HTMLElement).dataset.variable!, r.querySelector(".mono")!.textContent])));
    assert.deepEqual(shown, fold.context, `context after ${fold.sequence}`);
    const whose = (await page.locator(".whose").innerText()).match(/It was (\w+)'s turn/)?.[1] ?? "";
    assert.equal(whose, fold.next, `turn after ${fold.sequence}`);
  }
  await go(`#/channels/${told.channel_id}?graph`);
  await page.locator("svg .node").first().waitFor();
  for (const fold of told.folds) {
    await go(`#/channels/${told.channel_id}?at=${fold.sequence}&graph`);
    await page.locator(`svg[data-at="${fold.sequence}"]`).waitFor({ state: "attached" });
    if (fold.next) await page.locator("svg .current", { hasText: fold.next }).waitFor({ state: "attached" });
    const drawn = await page.locator("svg g.taken text").evaluateAll((all) => all.flatMap((t) => (t.closest(".node") ? [] : t.textContent!.split(",").map(Number))));
    assert.ok(drawn.every((turn) => turn <= fold.turns), `turns ${drawn} after ${fold.turns} turns`);
  }
  await done(page);
  await hub.end();
});

test("Why names the rule that parley graph simulate names", async () => {
  const hub = new Hub();
  const told = hub.seed<Told>("workflow", 260, 1);
  const [graph, script] = [join(hub.data, "..", `graph-${told.channel_id}.json`), join(hub.data, "..", `script-${told.channel_id}.json`)];
  const clean = [graph, script];
  writeFileSync(graph, JSON.stringify(told.graph));
  writeFileSync(script, JSON.stringify(told.script));
  const { steps } = JSON.parse(parley("graph", "simulate", graph, "--script", script, "-o", "json")) as { steps: { by: string; rule: number; next: string }[] };
  for (const file of clean) await import("node:fs").then((fs) => fs.rmSync(file));
  assert.equal(steps.length, told.turns.length);
  await hub.start();
  const page = await open(hub, `#/channels/${told.channel_id}?why`);
  await page.getByRole("complementary", { name: "Why" }).waitFor();
  // The first ones are not on the page when it opens: they are asked for.
  for (const n of [0, 1, 2, 17, 42, 58, 100, 151, 199, 230, 258, 259]) {
    await page.evaluate((h) => void (location.hash = h), `#/channels/${told.channel_id}?event=${told.turns[n]}&why`);
    const why = page.getByRole("complementary", { name: "Why" });
    await why.getByRole("link", { name: `turn ${n + 1}, event ${told.turns[n]}`, exact: true }).waitFor();
    const says = await why.innerText();
    assert.match(says, new RegExp(`${steps[n]!.next} is next`));
    if (steps[n]!.by === "rule") assert.match(says, new RegExp(`because rule ${steps[n]!.rule} fired`));
    else assert.match(says, new RegExp(`by ${steps[n]!.by}`));
  }
  await done(page);
  await hub.end();
});

test("the path on the graph is the one that a fold in Go takes, after every turn", async () => {
  const hub = new Hub();
  const told = hub.seed<Told>("workflow", 18, 1); // the page lists so many turns of an edge
  const [graph, script] = [join(hub.data, "..", `graph-${told.channel_id}.json`), join(hub.data, "..", `script-${told.channel_id}.json`)];
  writeFileSync(graph, JSON.stringify(told.graph));
  writeFileSync(script, JSON.stringify(told.script));
  const { steps } = JSON.parse(parley("graph", "simulate", graph, "--script", script, "-o", "json")) as { steps: { next: string }[] };
  for (const file of [graph, script]) rmSync(file);
  const speakers = [(told.graph as { initial_speaker: string }).initial_speaker, ...steps.map((s) => s.next)];
  await hub.start();
  const page = await open(hub, `#/channels/${told.channel_id}?graph`);
  const rules = page.getByRole("table", { name: "Rules" });
  await rules.waitFor();
  for (const [n, sequence] of told.turns.entries()) {
    await page.evaluate((h) => void (location.hash = h), `#/channels/${told.channel_id}?${sequence < told.length ? `at=${sequence}&` : ""}graph`);
    await page.locator(`svg[data-at="${sequence}"]`).waitFor({ state: "attached" });
    await page.locator("svg .current", { hasText: speakers[n + 1]! }).waitFor({ state: "attached" });
    const taken = speakers.slice(0, n + 1).map((from, turn) => `${turn + 1}: ${from} → ${speakers[turn + 1]}`);
    const shown = await rules.locator("tbody tr").evaluateAll((rows, names) => rows.flatMap((r) => {
      const [from, to, , turns] = [...r.querySelectorAll("td")].map((td) => td.textContent!);
      return names.includes(from!) && names.includes(to!) && turns ? turns.split(", ").map((turn) => `${turn}: ${from} → ${to}`) : [];
    }), [...new Set(speakers)]);
    assert.deepEqual(shown.sort((a, b) => parseInt(a) - parseInt(b)), taken, `after turn ${n + 1}`);
  }
  // What is odd about the graph is told by names, too.
  assert.ok((await page.locator("p.warn", { hasText: "▲" }).count()) > 0);
  assert.doesNotMatch(await page.getByRole("complementary", { name: "Graph" }).innerText(), /[0-9a-f]{32}/);
  await done(page);
  await hub.end();
});

test("keys go through the past by events and by turns, and back to live", async () => {
  const hub = new Hub();
  const told = hub.seed<Told>("workflow", 12, 1);
  await hub.start();
  const page = await open(hub, `#/channels/${told.channel_id}`);
  await page.locator("article[data-sequence]").last().waitFor();
  const at = (n: number) => page.getByText(`As of event ${n} of ${told.length}.`).waitFor();
  await page.keyboard.press("[");
  await at(told.length - 1);
  await page.keyboard.press("Shift+BracketLeft");
  await at(told.turns.at(-3)!);
  await page.keyboard.press("Shift+BracketRight");
  await at(told.turns.at(-2)!);
  await page.keyboard.press("Home");
  await at(0);
  await page.getByText("Before the first event.").waitFor();
  await page.getByLabel("Moment").focus();
  await page.keyboard.press("ArrowRight");
  await at(1);
  await page.keyboard.press("End"); // of the slider, and live
  await page.getByText("As of event").waitFor({ state: "detached" });
  await page.getByLabel("Moment").blur();
  await page.keyboard.press("[");
  await at(told.length - 1);
  await page.keyboard.press("Escape");
  await page.getByText("As of event").waitFor({ state: "detached" });
  await done(page);
  await hub.end();
});

test("the slider plays, goes by one event and by one turn, and nothing is sent from the past", async () => {
  const hub = new Hub();
  const told = hub.seed<Told>("workflow", 4, 1);
  await hub.start();
  const page = await open(hub, `#/channels/${told.channel_id}`);
  await page.locator("#compose").waitFor();
  await stopClock(page);
  const at = async (n: number) => {
    await page.getByText(`As of event ${n} of ${told.length}.`).waitFor();
    assert.ok(page.url().endsWith(`?at=${n}`), page.url());
    // Whatever moment it is, there is nothing to send with.
    await page.getByText("This is the past: nothing can be sent from here.").waitFor();
    assert.equal(await page.locator("main textarea, .composer").count(), 0);
    assert.equal(await page.getByRole("button", { name: /^(Send|Close channel)/ }).count(), 0);
  };
  const press = (name: string) => page.getByRole("button", { name, exact: true }).first().click();
  await press("One event back");
  await at(told.length - 1);
  await press("One turn back");
  await at(told.turns.filter((n) => n < told.length - 1).at(-1)!);
  await press("One turn back");
  await at(told.turns.filter((n) => n < told.length - 1).at(-2)!);
  await press("One turn forward");
  await at(told.turns.filter((n) => n < told.length - 1).at(-1)!);
  await press("One event forward");
  await at(told.turns.filter((n) => n < told.length - 1).at(-1)! + 1);
  const sent: string[] = [];
  page.on("request", (r) => { if (r.method() !== "GET" && !r.url().includes("/v1/watch/")) sent.push(r.url()); });
  await page.keyboard.press("c");
  await page.keyboard.press("Control+Enter");
  assert.deepEqual(sent, []);
  // From live it plays from the start, an event every 700 ms, to live.
  await press("Back to live");
  await page.locator("#compose").waitFor();
  await press("Play");
  await at(0);
  await page.clock.runFor(700);
  await at(1);
  await press("Pause");
  await page.clock.runFor(7000);
  await at(1);
  await page.getByLabel("Moment").focus();
  await page.keyboard.press("Space");
  for (let n = 2; n < told.length; n++) {
    await page.clock.runFor(700);
    await at(n);
  }
  await page.clock.runFor(700);
  await page.getByText("As of event").waitFor({ state: "detached" });
  await page.locator("#compose").waitFor();
  await page.clock.runFor(700);
  await page.getByRole("button", { name: "Play", exact: true }).waitFor();
  await done(page);
  await hub.end();
});
