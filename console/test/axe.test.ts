import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

for (const theme of ["light", "dark"] as const) {
  test(`no screen breaks a rule of accessibility, ${theme}`, async () => {
    const hub = await new Hub().start();
    const ada = await hub.agent("ada");
    await hub.agent("hana", "human");
    const graph = { initial_speaker: ada, transitions: [], default_target: { name: "round_robin", args: {} } };
    const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "workflow", participants: ["hana"], required_acks: 0, knobs: { graph }, labels: { title: "Flow" } });
    await hub.call("POST", `channels/${id}/events`, { sender: "ada", text: "Some **words** with `code`" });
    await hub.call("POST", `channels/${id}/requests`, { asked_by: "ada", kind: "approval", title: "Go on?", choices: [{ id: "approve" }, { id: "deny" }] });
    const page = await open(hub, "#/now", { colorScheme: theme });
    const broken: string[] = [];
    for (const screen of ["now", "inbox", "channels", `channels/${id}?why`, `channels/${id}?state`, `channels/${id}?graph`, `channels/${id}?people`, `channels/${id}?reading`, "agents", `agents/${ada}`, "tasks", "audit", "health", "access", "sessions", "peers"]) {
      await page.goto(`${hub.url}/console/#/${screen}`);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      await page.waitForFunction(() => !document.querySelector(".bones"));
      await page.evaluate(axe);
      const found = await page.evaluate(async () => (await (window as any).axe.run(document)).violations.map((v: any) => `${v.id}: ${v.nodes.map((n: any) => n.target.join(" ")).slice(0, 3).join(" | ")}`));
      broken.push(...(found as string[]).map((text) => `${screen}: ${text}`));
    }
    assert.deepEqual(broken, []);
    await done(page);
    await hub.end();
  });
}
