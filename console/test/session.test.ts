import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeAll, done, Hub, open, proxy } from "./rig.ts";

after(closeAll);

test("without keys this machine is operator, and the page makes the first key", async () => {
  const hub = await new Hub().start();
  const page = await open(hub);
  await page.getByText("No key exists: everyone on this machine is operator.").waitFor();
  await page.getByRole("button", { name: "Make the first key" }).click();
  await page.getByText("The first operator's key, shown once:").waitFor();
  const token = await page.locator(".bar code").innerText();
  await page.getByText("operator", { exact: true }).first().waitFor();
  const session = await page.request.get(`${hub.url}/v1/session`);
  assert.equal(((await session.json()) as { role: string }).role, "anonymous", "a cookie without its proof is as none");
  hub.token = token;
  assert.equal((await hub.call<{ role: string }>("GET", "session")).role, "operator");
  await done(page);
  await hub.end();
});

test("Access makes an operator's key first, because without one nobody could make another", async () => {
  const hub = await new Hub().start();
  const page = await open(hub, "#/access");
  const make = page.getByRole("button", { name: "Make the first key, an operator's" });
  await make.waitFor();
  assert.equal(await page.getByLabel("Role").count(), 0);
  await make.click();
  hub.token = await page.locator("[data-token]").innerText();
  await page.getByLabel("Role").selectOption("reader");
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.getByRole("table", { name: "Keys" }).getByRole("row", { name: /reader/ }).waitFor();
  assert.deepEqual((await hub.call<{ keys: { role: string }[] }>("GET", "keys")).keys.map((k) => k.role).sort(), ["operator", "reader"]);
  await done(page);
  await hub.end();
});

test("a token signs in at the address that was opened, and out again", async () => {
  const hub = await new Hub().start();
  await hub.key("operator");
  const page = await open(hub, "#/channels?state=active");
  await page.getByRole("heading", { name: "Sign in to Parley" }).waitFor();
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(hub.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Channels" }).waitFor();
  assert.ok(page.url().endsWith("#/channels?state=active"));
  assert.ok(!page.url().includes(hub.token));
  await page.reload();
  await page.getByRole("heading", { name: "Channels" }).waitFor();
  await page.locator("header summary").click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Parley" }).waitFor();
  await done(page);
  await hub.end();
});

test("a code from parley console signs in once", async () => {
  const hub = await new Hub().start();
  await hub.key("operator");
  const { code } = await hub.call<{ code: string }>("POST", "session/codes");
  const page = await open(hub, `#code=${code}`);
  await page.getByRole("heading", { name: "Now" }).waitFor();
  assert.ok(!page.url().includes(code));
  await done(page);
  const again = await open(hub, `#code=${code}`);
  await again.getByRole("heading", { name: "Sign in to Parley" }).waitFor();
  await done(again);
  await hub.end();
});

test("a revoked key ends the session, and the same address comes back after", async () => {
  const hub = await new Hub().start();
  await hub.key("operator");
  const token = await hub.key("reader");
  const page = await open(hub, "#/agents");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Agents" }).waitFor();
  const { keys } = await hub.call<{ keys: { id: string; role: string }[] }>("GET", "keys");
  await hub.call("DELETE", `keys/${keys.find((k) => k.role === "reader")!.id}`);
  await page.getByRole("heading", { name: "Sign in to Parley" }).waitFor();
  await page.getByText("Your key was revoked, or this session was ended.").waitFor();
  await page.getByLabel("Token").fill(hub.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Agents" }).waitFor();
  await done(page);
  await hub.end();
});

test("behind a proxy that strips /ops/parley every address leads below it", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, labels: { title: "Talk" } });
  await hub.key("operator");
  const between = await proxy(hub, "/ops/parley");
  // A request that leads elsewhere is a complaint: see open.
  const page = await open(hub, `#/channels/${id}`, { through: between.url });
  await page.getByLabel("Token").fill(hub.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: /Talk/ }).waitFor();
  await page.locator("header").getByText("● live").waitFor();
  await page.locator("#compose").fill("From below");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("article[data-sequence]", { hasText: "From below" }).waitFor();
  await page.getByRole("button", { name: "State", exact: true }).click();
  await page.getByRole("complementary", { name: "State" }).waitFor();
  for (const name of ["Now", "Inbox", "Channels", "Agents", "Tasks", "Audit", "Health", "Access", "Sessions", "Peers"]) {
    await page.getByRole("navigation").getByRole("link", { name: new RegExp(`^${name}`) }).first().click();
    await page.getByRole("heading", { name, level: 1 }).waitFor();
    await page.waitForFunction(() => !document.querySelector(".bones"));
    assert.equal(await page.getByRole("alert").count(), 0, name);
  }
  await page.reload();
  await page.getByRole("heading", { name: "Peers", level: 1 }).waitFor();
  await done(page);
  between.close();
  await hub.end();
});

test("whoever looks on without a key when others make one, and whose session ends, is told so", async () => {
  const hub = await new Hub(["--set", "console.session=20s"]).start();
  const page = await open(hub, "#/agents");
  await page.locator("header").getByText("● live").waitFor();
  await hub.key("operator");
  await page.getByText("Keys exist by now: sign in with one.").waitFor();
  await page.getByLabel("Token").fill(hub.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Agents" }).waitFor();
  await page.getByText(/^Signed out: the session lasted until \d/).waitFor();
  await done(page);
  await hub.end();
});
