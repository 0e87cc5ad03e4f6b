import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

/** A page of another port that tries what a hostile one would. */
async function stranger(hub: Hub): Promise<{ url: string; close: () => void }> {
  const html = `<!doctype html><title>stranger</title><iframe name="f" src="${hub.url}/console/"></iframe><img src="${hub.url}/v1/session">`;
  const server = createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end(html));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
}

for (const keys of [false, true]) {
  test(`a page of another port reads, writes and frames nothing, ${keys ? "with" : "without"} keys`, async () => {
    const hub = await new Hub().start();
    await hub.agent("ada");
    if (keys) await hub.key("operator");
    const page = await open(hub, "#/now", { complains: /./ });
    if (keys) {
      await page.getByLabel("Token").fill(hub.token);
      await page.getByRole("button", { name: "Sign in" }).click();
    }
    await page.getByRole("heading", { name: "Now" }).waitFor();
    const other = await stranger(hub);
    await page.goto(other.url);
    const tried = await page.evaluate(async (at) => {
      const got: string[] = [];
      const attempt = async (name: string, init: RequestInit, path: string) => {
        try {
          const r = await fetch(at + path, { credentials: "include", ...init });
          got.push(`${name}: ${r.type} ${await r.text()}`);
        } catch {
          got.push(`${name}: refused`);
        }
      };
      await attempt("read", {}, "/v1/agents");
      await attempt("opaque", { mode: "no-cors" }, "/v1/agents");
      await attempt("write", { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body: '{"name":"evil"}' }, "/v1/agents");
      return got;
    }, hub.url);
    assert.equal(tried[0], "read: refused");
    for (const line of tried.slice(1)) assert.match(line, /refused$|opaque $/);
    const frame = page.frames().find((f) => f !== page.mainFrame());
    assert.equal(await frame!.evaluate(() => document.querySelector("#app")), null);
    const { agents } = await hub.call<{ agents: { passport: { name: string } }[] }>("GET", "agents");
    assert.deepEqual(agents.map((a) => a.passport.name), ["ada"]);
    other.close();
    await done(page);
    await hub.end();
  });
}

test("a cookie without its proof, and a proof without its cookie, are nothing", async () => {
  const hub = await new Hub().start();
  await hub.key("operator");
  const made = await fetch(`${hub.url}/v1/session`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token: hub.token }) });
  assert.equal(made.status, 201);
  const { proof } = (await made.json()) as { proof: string };
  const cookie = made.headers.getSetCookie()[0]!;
  assert.match(cookie, /HttpOnly/);
  assert.match(cookie, /SameSite=Strict/);
  const half = cookie.split(";")[0]!;
  const status = async (headers: Record<string, string>) => (await fetch(`${hub.url}/v1/agents`, { headers })).status;
  assert.equal(await status({ Cookie: half, "Parley-Session": proof }), 200);
  assert.equal(await status({ Cookie: half }), 401);
  assert.equal(await status({ "Parley-Session": proof }), 401);
  await hub.end();
});
