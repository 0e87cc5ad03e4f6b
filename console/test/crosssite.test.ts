import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

/** What a hostile page tries: frames, pictures and forms as soon as it is there. */
function hostile(at: string): string {
  return `<!doctype html><title>stranger</title>
    <iframe name="f" src="${at}/console/"></iframe><iframe name="g"></iframe><iframe name="h"></iframe>
    <img id="i" src="${at}/v1/agents"><img id="j" src="${at}/console/icon.svg"><script src="${at}/v1/agents"></script>
    <form id="plain" method="post" enctype="text/plain" target="g" action="${at}/v1/agents"><input name='{"name":"evil-form","x":"' value='"}'></form>
    <form id="coded" method="post" target="h" action="${at}/v1/agents"><input name="name" value="evil-coded"></form>`;
}

/** A page of another port. */
async function stranger(hub: Hub): Promise<{ url: string; close: () => void }> {
  const server = createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end(hostile(hub.url)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
}

/** Tries to read and to write from the page that is open, with all that the browser has. */
async function attack(page: Page, at: string): Promise<Record<string, string>> {
  // What a frame may not show has no answer that a page could see.
  const submit = async (id: string) => {
    const asked = page.waitForEvent("request", (r) => r.method() === "POST" && r.isNavigationRequest());
    await page.evaluate((id) => document.querySelector<HTMLFormElement>(id)!.submit(), id);
    const answer = await (await asked).response();
    return !answer || answer.status() >= 400 ? "refused" : `${answer.status()}`;
  };
  const form = await submit("#plain");
  const coded = await submit("#coded");
  const tried = await page.evaluate(async (hub) => {
    const got: Record<string, string> = {};
    const attempt = async (name: string, init: RequestInit, path = "/v1/agents") => {
      try {
        const r = await fetch(hub + path, { credentials: "include", ...init });
        got[name] = `${r.type} ${r.status} ${await r.text()}`;
      } catch {
        got[name] = "refused";
      }
    };
    const json = { "Content-Type": "application/json" };
    await attempt("read", {});
    await attempt("session", {}, "/v1/session");
    await attempt("opaque", { mode: "no-cors" });
    await attempt("stream", { headers: { Accept: "text/event-stream" } }, "/v1/watch?topic=summary");
    await attempt("page", {}, "/console/");
    await attempt("write", { method: "POST", headers: json, body: '{"name":"evil"}' });
    await attempt("simple", { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body: '{"name":"evil-simple"}' });
    await attempt("proof", { headers: { "Parley-Session": "guess" } });
    await attempt("hpd", { method: "POST", headers: json, body: '{"sessionId":"evil"}' }, "/hpd/sessions");
    const pictures = [...document.images].map((i) => i.naturalWidth);
    got.pictures = pictures.every((w) => w === 0) ? "refused" : `pictures of ${pictures}`;
    return got;
  }, at);
  return { ...tried, form, coded };
}

for (const keys of [false, true]) {
  const says = keys ? "with" : "without";
  const begin = async () => {
    const hub = await new Hub().start();
    await hub.agent("ada");
    if (keys) await hub.key("operator");
    const page = await open(hub, "#/now", { complains: /./ });
    if (keys) {
      await page.getByLabel("Token").fill(hub.token);
      await page.getByRole("button", { name: "Sign in" }).click();
    }
    await page.getByRole("heading", { name: "Now" }).waitFor();
    return { hub, page };
  };
  const untouched = async (hub: Hub) => {
    const { agents } = await hub.call<{ agents: { passport: { name: string } }[] }>("GET", "agents");
    assert.deepEqual(agents.map((a) => a.passport.name), ["ada"]);
    const { keys: made } = await hub.call<{ keys: unknown[] }>("GET", "keys");
    assert.equal(made.length, keys ? 1 : 0);
  };

  test(`a page of another port reads, writes and frames nothing, ${says} keys`, async () => {
    const { hub, page } = await begin();
    const other = await stranger(hub);
    await page.goto(other.url);
    const tried = await attack(page, hub.url);
    // What no-cors answers, script cannot look into.
    for (const [name, line] of Object.entries(tried)) assert.match(line, name === "opaque" || name === "simple" ? /^refused$|^opaque 0 $/ : /^refused$/, name);
    for (const name of ["f", "g", "h"]) {
      const frame = page.frame({ name });
      await frame!.waitForLoadState();
      assert.equal(await frame!.evaluate(() => document.querySelector("#app")), null, name);
      assert.doesNotMatch(await frame!.evaluate(() => document.documentElement.textContent ?? ""), /ada|evil/, name);
    }
    await untouched(hub);
    other.close();
    await done(page);
    await hub.end();
  });

  test(`a name that was rebound to the hub reads, writes and frames nothing, ${says} keys`, async () => {
    const { hub, page } = await begin();
    // The page came from somebody's own machine; since then its name means this one.
    const rebound = `http://rebound.test:${new URL(hub.url).port}`;
    await page.route(`${rebound}/lure`, (route) => route.fulfill({ contentType: "text/html", body: hostile(rebound) }));
    await page.goto(`${rebound}/lure`);
    assert.equal(await page.evaluate(() => location.origin), rebound);
    const tried = await attack(page, rebound);
    // It is of the same origin, so that it sees the answers: each is a refusal.
    for (const [name, line] of Object.entries(tried)) {
      assert.match(line, /^refused$|^basic 4\d\d /, name);
      assert.doesNotMatch(line, /ada|operator|id="app"/, name);
    }
    assert.equal(await page.frame({ name: "f" })!.evaluate(() => document.querySelector("#app")), null);
    const direct = await page.goto(`${rebound}/console/`);
    assert.ok(direct!.status() >= 400, `${direct!.status()}`);
    await untouched(hub);
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
