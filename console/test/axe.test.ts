import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { broken } from "./axe.ts";
import { goByKeys, settled } from "./places.ts";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

interface Story { channel_id: string; request_id: string; talk_id: string }

function screens(story: Story, agent: string): string[] {
  const tabs = ["", "?why", "?state", "?graph", "?people", "?thread", "?expectations", "?raw", "?reading", "?at=5&state", "?event=6"];
  return ["now", "inbox", "inbox?state=answered", "channels", "channels?q=nothing", ...tabs.map((t) => `channels/${story.channel_id}${t}`), "channels/0123", "agents", "agents?q=nobody", `agents/${agent}`, "agents/nobody", "tasks", "audit", "health", "access", "sessions", "peers", "nowhere"];
}

for (const theme of ["light", "dark"] as const) {
  test(`nothing that opens over a screen, and no end of a connection, breaks a rule of accessibility, ${theme}`, async () => {
    const hub = new Hub();
    const story = hub.seed<Story>("story");
    await hub.start();
    const page = await open(hub, "#/now", { colorScheme: theme });
    const all: string[] = [];
    const go = async (hash: string) => {
      await page.goto(`${hub.url}/console/#/${hash}`);
      await settled(page);
    };
    for (const hash of ["channels?q=nothing", "channels/0123", "agents?q=nobody", "agents/nobody", "inbox?state=answered", "nowhere"]) {
      await go(hash);
      all.push(...(await broken(page, hash)));
    }
    // What opens over a screen.
    await go("channels");
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    all.push(...(await broken(page, "keys")));
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    await page.getByRole("combobox", { name: "Find a channel, an agent or an envelope" }).fill("Checkout");
    await page.locator('dialog [role="option"]').first().waitFor();
    all.push(...(await broken(page, "find")));
    await page.keyboard.press("Escape");
    await page.getByLabel(/^Choose Checkout/).check();
    await page.getByRole("button", { name: "Close 1 channel…" }).click();
    all.push(...(await broken(page, "closing")));
    await page.keyboard.press("Escape");
    await go("inbox");
    await page.locator("[data-request]").first().focus();
    await page.keyboard.press("a");
    await page.getByText("The link is drained").waitFor();
    all.push(...(await broken(page, "deciding")));
    // Not connected, signed out.
    await go(`channels/${story.channel_id}`);
    await hub.kill();
    await page.getByText(/Not connected since/).waitFor();
    all.push(...(await broken(page, "not connected")));
    await hub.start();
    await page.getByText(/Not connected since/).waitFor({ state: "detached" });
    await hub.key("operator");
    await page.reload();
    await page.getByRole("heading", { name: "Sign in to Parley" }).waitFor();
    all.push(...(await broken(page, "sign in")));
    assert.deepEqual(all, []);
    await done(page);
    await hub.end();
  });
}

/** What sticks out at the side. */
const wide = (page: Page) => page.evaluate(() => {
  const most = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= most && document.getElementById("main")!.scrollWidth <= document.getElementById("main")!.clientWidth) return "";
  return [...document.querySelectorAll("#app *")].filter((e) => e.getBoundingClientRect().right > most + 1).slice(0, 3).map((e) => e.outerHTML.slice(0, 120)).join("\n") || "wider";
});

test("nothing scrolls sideways at 320 px, nor at 200 % zoom, nor on a phone", async () => {
  const hub = new Hub();
  const story = hub.seed<Story>("story");
  await hub.start();
  const { agents } = await hub.call<{ agents: { passport: { agent_id: string } }[] }>("GET", "agents");
  // 200 % zoom of a window of 1280 px is one of 640 px with twice as many pixels.
  for (const [name, options] of Object.entries({ "320 px": { viewport: { width: 320, height: 640 } }, zoom: { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 }, phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } })) {
    const page = await open(hub, "#/now", options);
    const all: string[] = [];
    for (const hash of screens(story, agents[0]!.passport.agent_id)) {
      await page.goto(`${hub.url}/console/#/${hash}`);
      await settled(page);
      const out = await wide(page);
      if (out) all.push(`${name} ${hash}: ${out}`);
    }
    assert.deepEqual(all, []);
    await done(page);
  }
  await hub.end();
});

test("reduced motion stops everything that moves, forced colours keep focus and state, contrast is asked for", async () => {
  const hub = new Hub();
  const story = hub.seed<Story>("story");
  await hub.start();
  const page = await open(hub, `#/channels/${story.channel_id}?graph`, { reducedMotion: "reduce", forcedColors: "active" });
  await page.locator("svg .current").waitFor();
  await hub.call("POST", `channels/${story.talk_id}/live`, { sender: "triage", event_data: { delta: "x" } });
  const moving = () => page.evaluate(() => document.getAnimations().filter((a) => !(a.effect as KeyframeEffect | null)?.target?.classList.contains("caret")).length);
  assert.equal(await moving(), 0);
  await page.getByRole("button", { name: "Why", exact: true }).focus();
  await page.keyboard.press("Tab");
  const ring = await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle);
  assert.equal(ring, "solid", "the focus is seen");
  await page.getByText("active", { exact: false }).first().waitFor(); // state is a word, not only a colour
  const drawn = await page.evaluate(() => [getComputedStyle(document.querySelector("svg .current rect")!).strokeWidth, getComputedStyle(document.querySelector("svg .node:not(.current) rect")!).strokeWidth]);
  assert.notEqual(drawn[0], drawn[1], "the current node differs by more than its colour");
  assert.deepEqual(await broken(page, "forced colours"), []);
  await done(page);
  // Who asks for more contrast gets it: nothing is said in a lighter colour.
  const colours = async (contrast: "more" | "no-preference") => {
    const other = await open(hub, "#/now", { contrast });
    await other.getByRole("heading", { name: "Now" }).waitFor();
    const found = await other.evaluate(() => ["--muted", "--text", "--line", "--edge"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()));
    await done(other);
    return found;
  };
  const [muted, text, line, edge] = await colours("more");
  assert.deepEqual([muted, line], [text, edge]);
  const usual = await colours("no-preference");
  assert.notEqual(usual[0], usual[1]);
  await hub.end();
});

test("by keyboard alone: a request is decided, a turn taken, the past and its reasons looked at", async () => {
  const hub = new Hub();
  const story = hub.seed<Story>("story");
  await hub.start();
  const page = await open(hub, "#/now");
  await page.getByRole("heading", { name: "Now" }).waitFor();
  const key = (...names: string[]) => names.reduce((p, n) => p.then(() => page.keyboard.press(n)), Promise.resolve());
  await goByKeys(page, "i", "Inbox");
  await page.locator(`[data-request="${story.request_id}"]`).waitFor();
  // The first row is whatever is asked first: the approval.
  await key("j", "a");
  await page.getByText("The link is drained").waitFor();
  await key("Enter");
  await page.locator(`[data-request="${story.request_id}"]`).getByText("answered").waitFor();
  await key("/");
  await page.getByRole("combobox", { name: "Find a channel, an agent or an envelope" }).waitFor();
  await page.keyboard.type("Checkout");
  await page.getByRole("option", { name: /Checkout is slow/ }).waitFor();
  await key("Enter");
  await page.getByText("It is hana's turn").waitFor();
  await key("w");
  await page.getByText("is next because rule 3 fired.").waitFor();
  await key("[", "[");
  await page.getByText(/^As of event/).waitFor();
  await key("s");
  await page.locator("[data-variable=area]").waitFor();
  await key("v");
  await page.locator("svg .current").waitFor();
  await key("End", "Escape");
  await page.getByText(/^As of event/).waitFor({ state: "detached" });
  await key("c");
  await page.keyboard.type("Drain it.");
  await key("Control+Enter");
  await page.locator("article[data-sequence]", { hasText: "Drain it." }).waitFor();
  await page.getByText("Closed: resolved.").waitFor();
  // Every control of a screen is reached by Tab, in reading order, and seen there.
  await page.goto(`${hub.url}/console/#/channels`);
  await settled(page);
  // Each has its number in reading order; Tab goes through them from the first.
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll<HTMLElement>("a[href], button, input, select, textarea, summary, [tabindex]")].filter((e) => e.tabIndex >= 0 && !e.matches(":disabled") && e.checkVisibility());
    all.forEach((e, n) => (e.dataset.order = String(n)));
    all[0]!.focus();
    return all.map((e) => e.getAttribute("aria-label") ?? e.textContent!.trim());
  });
  for (const name of ["Find in channels", "State", "Waits for", "Sort"]) assert.ok(wanted.includes(name), `${name} is a control: ${wanted.join(", ")}`);
  const reached = [0];
  for (let n = 0; n < wanted.length + 5 && reached.at(-1) !== wanted.length - 1; n++) {
    await key("Tab");
    // What scrolls is reached too, and has no number.
    const order = await page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset.order);
    if (order !== undefined) reached.push(Number(order));
  }
  assert.deepEqual(reached, wanted.map((_, n) => n), wanted.join(", "));
  await done(page);
  await hub.end();
});
