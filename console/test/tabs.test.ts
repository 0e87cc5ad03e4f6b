import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

/** How many streams of /v1 the hub has open. */
async function followers(hub: Hub): Promise<number> {
  const { series } = await hub.call<{ series: { followers: (number | null)[] } }>("GET", "stats?series=followers");
  return series.followers.findLast((n) => n !== null) ?? 0;
}

// A headless browser calls every tab visible, so that it is said here.
async function show(page: Page, visible: boolean): Promise<void> {
  await page.evaluate((v) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => !v });
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (v ? "visible" : "hidden") });
    document.dispatchEvent(new Event("visibilitychange"));
  }, visible);
}

test("twelve tabs on plain HTTP, one visible: all answer, and hidden ones hold no stream", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  const first = await open(hub, "#/agents");
  const tabs = [first];
  await first.getByRole("link", { name: /ada/ }).waitFor();
  // Each is left when the next one is opened: a browser opens six connections.
  for (let n = 1; n < 12; n++) {
    await show(tabs.at(-1)!, false);
    const tab = await open(hub, "#/agents", { beside: first });
    await tab.getByRole("link", { name: /ada/ }).waitFor();
    await tab.locator("header").getByText("● live").waitFor();
    tabs.push(tab);
  }
  // The last two that were left keep theirs for a while.
  for (let open = 99; open > 3; open = await followers(hub)) await new Promise((resolve) => setImmediate(resolve));
  for (let open = 99; open > 1; open = await followers(hub)) await new Promise((resolve) => setImmediate(resolve));
  // A tab that is shown again is live, and has what came meanwhile.
  await hub.agent("bob");
  await show(tabs.at(-1)!, false);
  await show(tabs[3]!, true);
  await tabs[3]!.locator("header").getByText("● live").waitFor();
  await tabs[3]!.reload();
  await tabs[3]!.getByRole("link", { name: /bob/ }).waitFor();
  const complaints = tabs.flatMap((tab) => (tab as any).complaints as string[]);
  await done(first);
  assert.deepEqual(complaints, []);
  await hub.end();
});

test("a hidden tab ends its stream after 30 s, keeps the number in its title, and notifies only who asked", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("hana", "human");
  const page = await open(hub, "#/inbox", { permissions: ["notifications"] });
  await page.evaluate(() => {
    (window as any).told = [];
    window.Notification = class {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(_: string, options: { body: string }) { (window as any).told.push(options.body); }
    } as any;
  });
  await page.locator("header").getByText("● live").waitFor();
  const ask = async (title: string) => {
    const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["hana"], required_acks: 0 });
    await hub.call("POST", `channels/${id}/requests`, { asked_by: "ada", kind: "approval", title, choices: [{ id: "approve" }, { id: "deny" }] });
  };
  await show(page, false);
  await ask("One?");
  await page.waitForFunction(() => document.title === "(1) Parley");
  assert.deepEqual(await page.evaluate(() => (window as any).told), []);
  await show(page, true);
  await page.getByLabel("notify me while I look elsewhere").check();
  await show(page, false);
  for (let open = 99; open > 0; open = await followers(hub)) await new Promise((resolve) => setImmediate(resolve));
  await ask("Two?");
  // Without a stream the summary is asked for.
  await page.waitForFunction(() => document.title === "(2) Parley");
  assert.deepEqual(await page.evaluate(() => (window as any).told), ["2 wait for a person"]);
  await show(page, true);
  await page.locator("header").getByText("● live").waitFor();
  await done(page);
  await hub.end();
});
