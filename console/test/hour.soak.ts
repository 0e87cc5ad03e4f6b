// What takes too long for every run: an hour at 100 events a second, and an idle
// minute. make console-soak runs it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeAll, done, heap, Hub, open } from "./rig.ts";

after(closeAll);

async function talk(hub: Hub): Promise<{ id: string; ada: string }> {
  const ada = await hub.agent("ada");
  await hub.agent("bob");
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0 });
  return { id, ada };
}

test("the heap after 360,000 tailed events is at most 1.5 times that after 10,000", async () => {
  const hub = await new Hub().start();
  const { id, ada } = await talk(hub);
  const page = await open(hub, `#/channels/${id}`);
  await page.locator("header").getByText("● live").waitFor();
  let sent = 0;
  const until = async (most: number) => {
    await Promise.all(Array.from({ length: 64 }, async () => { while (sent < most) await hub.call("POST", `channels/${id}/events`, { sender: "ada", audience: [ada], event_type: "app.note", event_data: { text: `note ${++sent}` } }); }));
    const { length } = await hub.call<{ length: number }>("GET", `channels/${id}`);
    await page.locator(`article[data-sequence="${length}"]`).waitFor();
    return heap(page);
  };
  const few = await until(10_000);
  const many = await until(360_000);
  assert.ok(many <= 1.5 * few, `${many} bytes after ${few}`);
  await done(page);
  await hub.end();
});

test("an idle minute on an idle hub: no request but the stream, and at most one timer a second", async () => {
  const hub = await new Hub().start();
  const { id } = await talk(hub);
  const first = await open(hub, `#/channels/${id}`);
  // Every way to be called later counts when it calls.
  await first.context().addInitScript(() => {
    (window as any).fired = [] as string[];
    for (const name of ["setTimeout", "setInterval", "requestAnimationFrame", "requestIdleCallback"] as const) {
      const set = (window[name] as any).bind(window);
      (window as any)[name] = (f: (...rest: unknown[]) => void, ...rest: unknown[]) => set((...args: unknown[]) => { (window as any).fired.push(name); f(...args); }, ...rest);
    }
  });
  const pages = [first];
  for (const hash of ["#/now", "#/channels"]) pages.push(await open(hub, hash, { beside: first }));
  await first.reload();
  await Promise.all(pages.map(async (page) => {
    await page.locator("header").getByText("● live").waitFor();
    await page.getByRole("heading", { level: 1 }).waitFor();
  }));
  await Promise.all(pages.map(async (page) => {
    // What the first screen began is over: nothing was called but the clock for a while.
    // Looked at from outside, because what looks from within is called later, too.
    const quiet = () => page.evaluate(() => { const f = (window as any).fired as string[]; return f.length > 5 && f.slice(-3).every((name) => name === "setInterval"); });
    while (!(await quiet())) await new Promise((resolve) => setTimeout(resolve, 1000));
    const asked: string[] = [];
    page.on("request", (r) => asked.push(r.url()));
    const begun = await page.evaluate(() => { (window as any).fired = []; return performance.now(); });
    let took = 0;
    while ((took = (await page.evaluate(() => performance.now())) - begun) < 60_000) await new Promise((resolve) => setTimeout(resolve, 5000));
    assert.deepEqual(asked, [], page.url());
    const fired = await page.evaluate(() => (window as any).fired as string[]);
    assert.ok(fired.length > 30 && fired.length <= Math.ceil(took / 1000), `${page.url()}: ${fired.length} calls in ${took} ms: ${[...new Set(fired)].join(", ")}`);
  }));
  const complaints = pages.flatMap((page) => (page as any).complaints as string[]);
  await done(first);
  assert.deepEqual(complaints, []);
  await hub.end();
});
