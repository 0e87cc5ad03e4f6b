// Every screen in every state: with data, empty, loading, refused, to a reader and to
// somebody with a key of their own, in both themes.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { broken } from "./axe.ts";
import { full, hold, refuse, settled, signIn, visit } from "./places.ts";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

for (const colorScheme of ["light", "dark"] as const) {
  test(`no screen breaks a rule of accessibility with data, loading or refused, ${colorScheme}`, async () => {
    const { hub, all, end } = await full();
    const page = await open(hub, "#/now", { colorScheme });
    const found: string[] = [];
    for (const place of all) {
      const go = await hold(page, place.asks);
      await visit(page, hub, place);
      await page.locator("main .bones").first().waitFor();
      found.push(...(await broken(page, `${place.hash}, loading`)));
      await go();
      await settled(page);
      await page.getByText(place.says).first().waitFor({ state: "attached" });
      found.push(...(await broken(page, place.hash)));
      await refuse(page, place.asks);
      await visit(page, hub, place);
      await page.getByText("the store is being repaired").first().waitFor();
      found.push(...(await broken(page, `${place.hash}, refused`)));
      await page.unroute(place.asks);
    }
    assert.deepEqual(found, []);
    end();
    await done(page);
    await hub.end();
  });

  test(`no screen breaks a rule of accessibility empty, or to a reader or an agent, ${colorScheme}`, async () => {
    const { hub, all, end } = await full();
    const found: string[] = [];
    const nothing = await new Hub().start();
    const empty = await open(nothing, "#/now", { colorScheme });
    for (const place of all) {
      if (!place.empty) continue;
      await visit(empty, nothing, place);
      await empty.getByText(place.empty).first().waitFor();
      await settled(empty);
      found.push(...(await broken(empty, `${place.hash}, empty`)));
    }
    await done(empty);
    await nothing.end();
    await hub.key("operator");
    for (const [who, token] of [["reader", await hub.key("reader")], ["own", await hub.key("agent", "hana")]] as const) {
      const page = await open(hub, "#/now", { colorScheme });
      await signIn(page, token);
      for (const place of all) {
        await visit(page, hub, place);
        await page.getByText(who === "own" ? place.own : (place.reader ?? place.says)).first().waitFor({ state: "attached" });
        await settled(page);
        found.push(...(await broken(page, `${place.hash}, ${who}`)));
      }
      await done(page);
    }
    assert.deepEqual(found, []);
    end();
    await hub.end();
  });
}
