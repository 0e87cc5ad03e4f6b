// The real AG2 package asks, in the environment of interop/ag2.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { asker, closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

test("an approval that a Python AG2 agent asks for is answered in the inbox: the agent goes on, and the audit says who", async () => {
  const hub = await new Hub().start();
  await hub.key("operator");
  const desk = await hub.key("operator");
  await asker(hub, "deployer", await hub.key("agent", "deployer"));
  await hub.agent("hana", "human");
  const { key } = await hub.call<{ key: string }>("GET", "session", undefined, desk);
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "hana", type: "conversation", participants: ["deployer"], labels: { title: "Releases" } });

  const page = await open(hub, "#/inbox");
  await page.getByLabel("Token").fill(desk);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Nobody waits for an answer.").waitFor();
  await page.locator("header").getByText("● live").waitFor();
  for (const [version, button, told] of [[7, "Approve", "It is out."], [8, "Deny", "I was not allowed to."]] as const) {
    await hub.call("POST", `channels/${id}/events`, { sender: "hana", text: `Release ${version}.` });
    await page.getByRole("button", { name: "1 new request. Show" }).click();
    const card = page.locator("article[data-request]", { hasText: "May deployer call release?" }).filter({ hasText: `${version}` }).filter({ has: page.getByRole("button", { name: button }) });
    await card.getByRole("link", { name: "Releases" }).waitFor();
    const request = (await card.getAttribute("data-request"))!;
    await card.getByRole("button", { name: button }).click();
    await card.getByRole("button", { name: `Decide: ${button}` }).click();
    await page.locator(`article[data-request="${request}"]`).getByText("answered").waitFor();
    // The agent goes on with what it was told.
    const timeline = await open(hub, `#/channels/${id}`, { beside: page });
    await timeline.locator("article[data-sequence]", { hasText: told }).waitFor();
    await timeline.close();
    const { records } = await hub.call<{ records: { request_id: string; key?: string; state: string }[] }>("GET", "audit?kind=request_ended");
    const record = records.find((r) => r.request_id === request);
    assert.deepEqual([record?.state, record?.key], ["answered", key]);
  }
  // What was decided stands beside what is asked, with who decided.
  const history = page.getByRole("region", { name: "Decided lately" });
  await history.getByRole("link", { name: "May deployer call release?" }).nth(1).waitFor();
  await history.getByText(/^approve/).waitFor();
  await history.getByText(/^deny/).waitFor();
  // And on the page of the audit.
  await page.goto(`${hub.url}/console/#/audit?kind=request_ended`);
  await page.getByRole("heading", { name: "Audit" }).waitFor();
  await page.getByText(key.slice(-6)).filter({ visible: true }).first().waitFor();
  await done(page);
  await hub.end();
});
