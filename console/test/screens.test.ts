import assert from "node:assert/strict";
import { after, test } from "node:test";
import { full, hold, refuse, settled, signIn, visit, type Place } from "./places.ts";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

interface Story { channel_id: string; request_id: string; talk_id: string }

test("every screen with data shows it, at the address that was typed, and after a reload", async () => {
  const { hub, all, end } = await full();
  const page = await open(hub, "#/now");
  for (const place of all) {
    await visit(page, hub, place);
    for (const again of [false, true]) {
      if (again) await page.reload();
      await page.getByText(place.says).first().waitFor({ state: "attached" });
      await settled(page);
      assert.equal(await page.getByRole("alert").count(), 0, place.hash);
      assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1, place.hash);
      assert.ok(page.url().endsWith(`#/${place.hash}`), page.url());
    }
  }
  end();
  await done(page);
  await hub.end();
});

test("every screen of an empty hub says that it is empty, and what to do", async () => {
  const { hub: other, all, end } = await full();
  end();
  await other.end();
  const hub = await new Hub().start();
  const page = await open(hub, "#/now");
  const more: Place[] = [["channels?q=nothing", "No channel with “nothing” exists."], ["agents?q=nobody", "Nobody matches."], ["channels?state=active&type=workflow&waiting_for=people", "No active channel of type workflow waits for people."], ["inbox?state=expired", "No request is expired."], ["inbox?kind=approval", "No request of the kind approval is open."], ["audit?kind=channel_closed", "No record is of the kind channel_closed."], ["tasks?state=failed", "No task is failed."]].map(([hash, empty]) => ({ hash: hash!, empty: empty!, asks: "", says: "", own: "" }));
  for (const place of [...all, ...more]) {
    if (!place.empty) continue;
    await visit(page, hub, place);
    await page.getByText(place.empty).first().waitFor();
  }
  await visit(page, hub, { hash: "nowhere-else" });
  await page.getByRole("heading", { name: "Nothing is here" }).waitFor();
  // What has an id and is not there says so.
  for (const hash of [`channels/${"0".repeat(32)}`, "agents/nobody", "sessions/none", "inbox?id=none", "peers?workspace=none"]) {
    await visit(page, hub, { hash });
    await page.getByRole("alert").first().waitFor();
  }
  await done(page);
  await hub.end();
});

test("every screen that waits shows bars of the real shape, and one that is refused says why and tries again", async () => {
  const { hub, all, end } = await full();
  const page = await open(hub, "#/now", { complains: /./ });
  for (const place of all) {
    const go = await hold(page, place.asks);
    await visit(page, hub, place);
    await page.locator("main .bones").first().waitFor();
    await go();
    await settled(page);
    await page.getByText(place.says).first().waitFor({ state: "attached" });
    await refuse(page, place.asks);
    await visit(page, hub, place);
    const refusal = page.getByText("the store is being repaired");
    await refusal.first().waitFor();
    await page.getByText("unavailable", { exact: true }).first().waitFor();
    await page.unroute(place.asks);
    // A part of a screen may try again by itself, and be faster.
    for (let left = await refusal.count(); left > 0; left = await refusal.count()) {
      await page.getByRole("button", { name: "Try again" }).first().click({ timeout: 10_000 }).catch(() => {});
      await page.waitForFunction((n) => document.querySelectorAll('[role="alert"]').length < n, left);
    }
    await page.getByText(place.says).first().waitFor({ state: "attached" });
  }
  end();
  await page.context().close();
  await hub.end();
});

test("a reader sees every screen and no control; somebody's own key sees what is theirs, and takes their turn", async () => {
  const { hub, all, end } = await full();
  await hub.key("operator");
  const reader = await hub.key("reader");
  const hana = await hub.key("agent", "hana");
  const page = await open(hub, "#/now");
  await signIn(page, reader);
  for (const place of all) {
    await visit(page, hub, place);
    await page.getByText(place.reader ?? place.says).first().waitFor({ state: "attached" });
    await settled(page);
    assert.equal(await page.getByRole("alert").count(), 0, place.hash);
    assert.equal(await page.getByRole("button", { name: /^(Close (channel|all|\d)|Approve|Deny|Revoke|End session|Cancel task|Send|Make (a key|the first)|Accept|Decline)/ }).count(), 0, place.hash);
    assert.equal(await page.locator("main textarea, main input[type=checkbox][aria-label^=Choose]").count(), 0, place.hash);
  }
  await done(page);

  const person = await open(hub, "#/now");
  await signIn(person, hana);
  const story = all[3]!;
  await person.getByRole("navigation").getByRole("link", { name: "Inbox" }).waitFor();
  for (const name of ["Audit", "Health", "Access"]) assert.equal(await person.getByRole("navigation").getByRole("link", { name }).count(), 0, name);
  for (const place of all) {
    await visit(person, hub, place);
    await person.getByText(place.own).first().waitFor({ state: "attached" });
    await settled(person);
    assert.equal(await person.getByRole("button", { name: /^(Close (channel|all|\d)|Revoke|Cancel task|Make (a key|the first))/ }).count(), 0, place.hash);
  }
  await visit(person, hub, story);
  await person.getByText("It is hana's turn").waitFor();
  await person.locator("#compose").fill("Drain it.");
  await person.locator("#compose").press("Control+Enter");
  await person.locator("article", { hasText: "Drain it." }).waitFor();
  // What she said ended it, and only the list by age has what has ended.
  await person.goto(`${hub.url}/console/#/channels?sort=created`);
  await person.getByRole("link", { name: /Checkout is slow/ }).waitFor();
  assert.equal(await person.getByRole("link", { name: /Release 7/ }).count(), 0, "a channel of others");
  const { channels } = await hub.call<{ channels: { channel_id: string; title: string }[] }>("GET", "channels?form=row&q=Release");
  await visit(person, hub, { hash: `channels/${channels[0]!.channel_id}` });
  await person.getByRole("alert").waitFor();
  end();
  await done(person);
  await hub.end();
});

test("every address survives a reload, and back keeps the place in a list", async () => {
  const hub = new Hub();
  const story = hub.seed<Story>("story");
  await hub.start();
  for (let n = 0; n < 60; n++) await hub.call("POST", "channels", { creator: "triage", type: "discussion", participants: ["database"], required_acks: 0, labels: { title: `Talk ${n}` } });
  const page = await open(hub, "#/now");
  const links: Record<string, string> = {
    "channels?q=Checkout": "Checkout is slow", [`channels/${story.channel_id}?at=6&state`]: "After event 6: active.", [`channels/${story.channel_id}?event=6&raw`]: "Event 6,",
    [`channels/${story.channel_id}?why`]: "is next because rule", [`inbox?id=${story.request_id}`]: "Drain link 2 of rack 7?", "agents?sort=seen": "triage", "health?span=3h": "admitted", [`channels/${story.channel_id}?reading`]: "Page 1 of 1",
  };
  for (const [hash, words] of Object.entries(links)) {
    await page.goto(`${hub.url}/console/#/${hash}`);
    await page.getByText(words).first().waitFor();
    await page.reload();
    await page.getByText(words).first().waitFor();
    assert.ok(page.url().endsWith(`#/${hash}`), page.url());
  }
  await page.goto(`${hub.url}/console/#/channels?sort=created`);
  await page.getByRole("link", { name: /^Talk 59/ }).waitFor();
  await page.getByRole("link", { name: /^Talk 15/ }).scrollIntoViewIfNeeded();
  const top = () => page.locator("#main").evaluate((m) => m.scrollTop);
  const before = await top();
  assert.ok(before > 100, `the list is scrolled to ${before}`);
  await page.getByRole("link", { name: /^Talk 15/ }).click();
  await page.getByRole("heading", { name: /Talk 15/ }).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: /^Talk 15/ }).waitFor();
  await page.waitForFunction((was) => Math.abs(document.getElementById("main")!.scrollTop - was) < 3, before);
  await page.getByRole("button", { name: "Next page" }).click();
  await page.getByRole("link", { name: /^Talk 3 / }).waitFor();
  await page.reload();
  await page.getByRole("link", { name: /^Talk 3 / }).waitFor();
  await page.getByRole("button", { name: "Previous page" }).click();
  await page.getByRole("link", { name: /^Talk 59/ }).waitFor();
  await done(page);
  await hub.end();
});

test("back keeps the place on every list that leads somewhere", async () => {
  const hub = await new Hub().start();
  for (let n = 0; n < 60; n++) await hub.agent(`agent-${String(n).padStart(2, "0")}`);
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "agent-00", type: "discussion", participants: ["agent-01"], required_acks: 0, labels: { title: "Talk" } });
  for (let n = 0; n < 30; n++) await hub.call("POST", `channels/${id}/requests`, { asked_by: "agent-00", kind: "approval", title: `Go on with ${n}?`, body: "It costs money.\n\nAnd time." });
  const page = await open(hub, "#/now");
  const top = () => page.locator("#main").evaluate((m) => m.scrollTop);
  for (const [hash, row] of [["agents?sort=name", page.getByRole("link", { name: /agent-40/ })], ["audit", page.getByRole("table", { name: "Audit" }).getByRole("link").last()], ["inbox", page.getByRole("link", { name: "Talk", exact: true }).nth(12)]] as const) {
    await page.goto(`${hub.url}/console/#/${hash}`);
    await settled(page);
    await row.waitFor();
    await row.scrollIntoViewIfNeeded();
    const before = await top();
    assert.ok(before > 100, `${hash} is scrolled to ${before}`);
    await row.click();
    await page.waitForFunction((was) => !location.hash.startsWith(`#/${was}`), hash);
    await settled(page);
    await page.goBack();
    await page.waitForFunction((was) => Math.abs(document.getElementById("main")!.scrollTop - was) < 3, before);
    assert.ok(page.url().endsWith(`#/${hash}`), page.url());
  }
  await done(page);
  await hub.end();
});

test("Enter opens the row that has the focus, on every list of rows; the menu goes away as menus do", async () => {
  const { hub, end } = await full();
  const page = await open(hub, "#/now");
  for (const [hash, there] of [["channels", /#\/channels\/\w/], ["agents", /#\/agents\/\w/], ["tasks", /#\/tasks\?id=/], ["sessions", /#\/sessions\/s-1$/]] as const) {
    await visit(page, hub, { hash });
    await page.locator("tr[data-row]").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(there);
  }
  const menu = page.getByRole("button", { name: "Show the keys" });
  const me = page.locator("header summary");
  await me.click();
  await menu.waitFor();
  await page.keyboard.press("Escape");
  await menu.waitFor({ state: "hidden" });
  assert.ok(await me.evaluate((e) => e === document.activeElement), "the focus is where it was");
  await me.click();
  await menu.waitFor();
  await page.getByRole("heading", { level: 1 }).click();
  await menu.waitFor({ state: "hidden" });
  end();
  await done(page);
  await hub.end();
});

test("sessions page both ways, and the place is kept", async () => {
  const hub = await new Hub().start();
  for (let n = 0; n < 51; n++) {
    const answer = await fetch(`${hub.url}/hpd/sessions`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ sessionId: `s-${String(n).padStart(2, "0")}` }) });
    assert.equal(answer.status, 201);
  }
  const page = await open(hub, "#/sessions");
  await page.getByRole("link", { name: "s-50" }).waitFor(); // the last one that was active
  await page.getByText("50 of 51 sessions").waitFor();
  await page.getByRole("button", { name: "Next page" }).click();
  for (const _ of ["shown", "reloaded"]) {
    await page.getByRole("link", { name: "s-00" }).waitFor();
    await page.getByText("1 of 51 sessions").waitFor();
    await page.reload();
  }
  await page.getByRole("button", { name: "Previous page" }).click();
  await page.getByRole("link", { name: "s-50" }).waitFor();
  await done(page);
  await hub.end();
});

test("on a phone the bar is one line, titles have room, and the audit says what happened", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  const talk = (title: string) => hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, labels: { title } });
  await talk("Checkout is slow");
  const { channel_id: id } = await talk("Over and done");
  await hub.call("POST", `channels/${id}/close`, { reason: "resolved" });
  for (const width of [375, 320]) {
    const page = await open(hub, "#/channels?sort=created", { viewport: { width, height: 720 }, hasTouch: true, isMobile: true });
    const row = page.getByRole("link", { name: /^Checkout is slow/ });
    await row.waitFor();
    const bar = await page.getByRole("navigation", { name: "Screens" }).evaluate((nav) => [...nav.children].map((c) => c.getBoundingClientRect()).filter((r) => r.height > 0).map((r) => [Math.round(r.top), Math.round(r.height)]));
    assert.equal(bar.length, 5);
    assert.deepEqual(bar, bar.map(() => bar[0]), `the bar at ${width} px`);
    const cell = await row.locator("xpath=..").evaluate((td) => td.clientWidth);
    assert.ok(cell > 0.38 * (width - 24), `a title has ${cell} of ${width} px`);
    await page.getByText("2 channels", { exact: true }).waitFor(); // of which one has ended
    await page.goto(`${hub.url}/console/#/audit`);
    const ended = page.getByRole("row", { name: /channel_closed/ });
    await ended.locator(".narrow").getByText(/reason resolved/).waitFor();
    await ended.getByRole("link", { name: id.slice(-6) }).first().click();
    await page.getByRole("heading", { name: /Over and done/ }).waitFor();
    // What is not always needed leaves its room to what is said.
    assert.equal(await page.getByLabel("Download").isVisible(), false);
    await page.getByRole("button", { name: "Tools" }).click();
    await page.getByLabel("Download").waitFor();
    await page.getByRole("button", { name: "Tools" }).click();
    assert.equal(await page.getByLabel("Moment").isVisible(), false);
    const room = await page.locator(".timeline").evaluate((t) => t.clientHeight);
    assert.ok(room > 0.3 * 720, `the timeline has ${room} of 720 px`);
    await page.getByRole("button", { name: "Time", exact: true }).click();
    await page.getByLabel("Moment").waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing scrolls sideways");
    await done(page);
  }
  await hub.end();
});

test("Now shows turns that failed and channels that cannot be folded, each one click from its cause", async () => {
  const hub = new Hub();
  const trouble = hub.seed<{ talk_id: string; broken_id: string }>("trouble");
  await hub.start();
  const page = await open(hub, "#/now");
  await page.getByRole("link", { name: "the model did not answer" }).click();
  await page.locator("article[data-sequence]", { hasText: "Over to you, dan." }).waitFor();
  assert.match(page.url(), new RegExp(`#/channels/${trouble.talk_id}`));
  // The hub finds out what it cannot fold when it is asked for it.
  await page.goto(`${hub.url}/console/#/channels/${trouble.broken_id}`);
  await page.getByText(/seed\.unknown/).first().waitFor();
  await page.goto(`${hub.url}/console/#/now`);
  await page.getByRole("heading", { name: "Cannot be folded" }).waitFor();
  await page.getByText(/✕ .*seed\.unknown/).waitFor();
  await page.getByRole("link", { name: trouble.broken_id.slice(-6), exact: true }).click();
  await page.getByText(/seed\.unknown/).first().waitFor();
  await done(page);
  await hub.end();
});

test("new rows wait behind a pill, and all that match are closed at once", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  const talk = (title: string) => hub.call("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, labels: { title } });
  for (const title of ["red 1", "red 2", "blue 1"]) await talk(title);
  const page = await open(hub, "#/channels");
  await page.getByRole("link", { name: /^red 1/ }).waitFor();
  await page.locator("header").getByText("● live").waitFor();
  await page.getByText("3 open channels", { exact: true }).waitFor();
  await talk("red 3");
  await page.getByRole("button", { name: "1 new row. Show" }).click();
  await page.getByRole("link", { name: /^red 3/ }).waitFor();
  await page.getByLabel("Find in channels").fill("red");
  await page.getByLabel("Find in channels").press("Enter");
  await page.getByRole("button", { name: "Close all that match…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("heading", { name: "Close 3 channels" }).waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Close 3 channels" }).isDisabled());
  await dialog.getByLabel("Reason").fill("tidied");
  await dialog.getByLabel("Type 3 to go on").fill("3");
  // One came meanwhile: nothing is closed.
  await talk("red 4");
  await dialog.getByRole("button", { name: "Close 3 channels" }).click();
  await dialog.getByRole("alert").filter({ hasText: "4 channels match, not 3" }).waitFor();
  await dialog.getByRole("button", { name: "Keep" }).click();
  await page.getByRole("button", { name: "Close all that match…" }).click();
  await dialog.getByLabel("Reason").fill("tidied");
  await dialog.getByLabel("Type 4 to go on").fill("4");
  await dialog.getByRole("button", { name: "Close 4 channels" }).click();
  await dialog.waitFor({ state: "detached" });
  const { channels } = await hub.call<{ channels: { title: string; state: string; close_reason: string }[] }>("GET", "channels?form=row");
  assert.deepEqual(channels.map((c) => `${c.title} ${c.state} ${c.close_reason}`).sort(), ["blue 1 active ", "red 1 closed tidied", "red 2 closed tidied", "red 3 closed tidied", "red 4 closed tidied"]);
  await done(page);
  await hub.end();
});

test("a channel is downloaded, its thread is followed, and a key is revoked with a word typed", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, labels: { title: "Talk" } });
  const said = await hub.call<{ envelope_id: string }>("POST", `channels/${id}/events`, { sender: "ada", text: "Shall we?" });
  await hub.call("POST", `channels/${id}/events`, { sender: "bob", text: "We shall.", causation_id: said.envelope_id });
  const token = await hub.key("operator");
  const other = await hub.key("reader");
  const page = await open(hub, `#/channels/${id}`);
  await signIn(page, token);
  await page.getByText("We shall.").waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByLabel("Download").selectOption("markdown")]);
  assert.match(file.suggestedFilename(), /\.md$/);
  await page.locator("article", { hasText: "We shall." }).last().hover();
  await page.getByRole("button", { name: /^reply to #/ }).waitFor();
  await page.getByRole("button", { name: "thread", exact: true }).click();
  await page.locator("[data-thread]", { hasText: "Shall we?" }).waitFor();
  await page.locator("[data-thread].current", { hasText: "We shall." }).waitFor();
  // An envelope is found by its id from anywhere.
  await page.goto(`${hub.url}/console/#/now`);
  await page.getByRole("heading", { name: "Now" }).waitFor();
  await page.keyboard.press("/");
  await page.getByRole("combobox", { name: "Find a channel, an agent or an envelope" }).fill(said.envelope_id);
  await page.getByRole("option", { name: /^Talk event \d+/ }).click();
  await page.locator("article[data-sequence]", { hasText: "Shall we?" }).waitFor();
  assert.match(page.url(), new RegExp(`#/channels/${id}\\?event=\\d+$`));
  await page.getByRole("button", { name: "People", exact: true }).click();
  await page.getByRole("complementary", { name: "People" }).getByText("has read nothing yet").first().waitFor();
  await page.goto(`${hub.url}/console/#/access`);
  const row = page.getByRole("table", { name: "Keys" }).getByRole("row", { name: /reader/ });
  await row.getByRole("button", { name: "Revoke key…" }).click();
  const dialog = page.getByRole("dialog");
  const word = (await dialog.getByText(/^Type \w+ to go on/).innerText()).split(" ")[1]!;
  await dialog.getByLabel(/^Type/).fill(word);
  await dialog.getByRole("button", { name: "Revoke key" }).click();
  await row.waitFor({ state: "detached" });
  assert.equal((await fetch(`${hub.url}/v1/agents`, { headers: { Authorization: `Bearer ${other}` } })).status, 401);
  await done(page);
  await hub.end();
});
