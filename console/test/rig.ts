// A real hub, a real browser, and a page that may not complain.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import assert from "node:assert/strict";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";

export const binary = process.env.PARLEY ?? join(import.meta.dirname ?? ".", "../../bin/parley");
const seeder = join(dirname(binary), "console-seed");

/** What the seed program says of a folder that it filled. */
export function seed<T>(data: string, scene: string, count = 100, samples = 200): T {
  return JSON.parse(execFileSync(seeder, ["-data", data, "-scene", scene, "-count", String(count), "-samples", String(samples)], { maxBuffer: 64 << 20 }).toString()) as T;
}

/** What a command of the binary prints. */
export function parley(...args: string[]): string {
  return execFileSync(binary, args, { maxBuffer: 64 << 20, stdio: ["ignore", "pipe", "pipe"] }).toString();
}

export class Hub {
  url = "";
  token = "";
  data = mkdtempSync(join(tmpdir(), "parley-console-"));
  #process: ChildProcess | null = null;
  #port = "0";
  #flags: string[];
  #program: string;

  constructor(flags: string[] = [], program = binary) {
    this.#flags = flags;
    this.#program = program;
  }

  /** Fills the folder of a hub that was not started yet. */
  seed<T>(scene: string, count?: number, samples?: number): T {
    return seed<T>(this.data, scene, count, samples);
  }

  /** Goes on with another folder, as after a restore. */
  moveTo(data: string): void {
    rmSync(this.data, { recursive: true, force: true });
    this.data = data;
  }

  async start(): Promise<this> {
    const child = spawn(this.#program, ["serve", "--data", this.data, "--listen", `127.0.0.1:${this.#port}`, "-o", "json", ...this.#flags], { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    hubs.add(this);
    let said = "";
    let errors = "";
    child.stderr!.on("data", (part: Buffer) => (errors += part.toString()));
    this.url = await new Promise<string>((resolve, reject) => {
      child.stdout!.on("data", (part: Buffer) => {
        said += part.toString();
        const found = /"url":\s*"([^"]+)"/.exec(said);
        if (found) resolve(found[1]!);
      });
      child.once("exit", (code) => reject(new Error(`parley ended with ${code}: ${errors}`)));
    });
    this.#port = new URL(this.url).port;
    return this;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }

  async end(): Promise<void> {
    await this.kill();
    hubs.delete(this);
    rmSync(this.data, { recursive: true, force: true });
  }

  async call<T>(method: string, path: string, body?: unknown, token = this.token): Promise<T> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (token) headers.Authorization = `Bearer ${token}`;
    const answer = await fetch(`${this.url}/v1/${path}`, body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }).catch((err) => { throw new Error(`${method} ${path}: ${err.cause ?? err}`); });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  async key(role: string, agent?: string): Promise<string> {
    const made = await this.call<{ token: string }>("POST", "keys", agent ? { role, agent } : { role });
    if (role === "operator" && !this.token) this.token = made.token;
    return made.token;
  }

  async agent(name: string, kind?: string): Promise<string> {
    const made = await this.call<{ passport?: { agent_id: string }; agent_id?: string }>("POST", "agents", kind ? { name, kind } : { name });
    return made.passport?.agent_id ?? made.agent_id!;
  }
}

/** Notes of somebody in a channel, so many a second, or as many as the hub takes. */
export async function storm(hub: Hub, channel: string, sender: string, count: number, rate = 0): Promise<{ sent: number; seconds: number }> {
  const child = spawn(seeder, ["-scene", "storm", "-hub", hub.url, "-channel", channel, "-sender", sender, "-count", String(count), "-rate", String(rate)], { stdio: ["ignore", "pipe", "pipe"] });
  others.add(child);
  let [said, errors] = ["", ""];
  child.stdout.on("data", (part: Buffer) => (said += part.toString()));
  child.stderr.on("data", (part: Buffer) => (errors += part.toString()));
  const code = await new Promise((resolve) => child.once("close", resolve));
  others.delete(child);
  assert.equal(code, 0, errors);
  return JSON.parse(said) as { sent: number; seconds: number };
}

/** The heap of a page after a collection. */
export async function heap(page: Page): Promise<number> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = (await devtools.send("Runtime.getHeapUsage")) as { usedSize: number };
  await devtools.detach();
  return usedSize;
}

const hubs = new Set<Hub>();
let browser: Browser | null = null;

export async function open(hub: Hub, hash = "#/now", options: BrowserContextOptions & { complains?: RegExp; through?: string; beside?: Page } = {}): Promise<Page> {
  browser ??= await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP rebound.test 127.0.0.1"],
  });
  // through: the address of a proxy; beside: another tab of the same browser.
  const { complains, through, beside, ...rest } = options;
  const at = through ?? hub.url;
  const context = beside?.context() ?? (await browser.newContext({ viewport: { width: 1280, height: 800 }, ...rest }));
  context.setDefaultTimeout(Number(process.env.PATIENCE ?? 120_000)); // a browser on a busy machine takes its time
  const page = await context.newPage();
  const complaints: string[] = [];
  (page as any).complaints = complaints;
  const note = (text: string) => {
    if (!complains?.test(text)) complaints.push(text);
  };
  page.on("pageerror", (err) => note(`error: ${err.message}`));
  page.on("dialog", (dialog) => {
    note(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // A refused fetch is told by the browser itself; the page shows it too.
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text())) note(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(at) && !/^(data|blob):/.test(request.url())) note(`request: ${request.url()}`);
  });
  await page.addInitScript(() => addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`)));
  await page.goto(`${at}/console/${hash}`);
  return page;
}

/** Stops the page's clock, some seconds ahead; from here on it goes when it is told to. */
export async function stopClock(page: Page): Promise<void> {
  // Enough seconds for a slow machine to get there, too few for a silent stream to be dropped.
  const now = await page.evaluate(() => Date.now());
  await page.clock.install({ time: now });
  await page.clock.pauseAt(now + 10_000);
}

/** Ends a page; it fails if the page complained. */
export async function done(page: Page): Promise<void> {
  const complaints = (page as any).complaints as string[];
  await page.context().close();
  assert.deepEqual(complaints, []);
}

/** Ends what the tests of a file started, also what a failed one left: it would keep the run from ending. */
export async function closeAll(): Promise<void> {
  for (const child of others) child.kill("SIGKILL");
  for (const hub of hubs) await hub.end();
  await browser?.close();
  browser = null;
}

/** Waits until somebody is registered: a participant takes a moment to begin. */
export async function registered(hub: Hub, name: string): Promise<void> {
  for (let found = 0; found === 0; ) found = (await hub.call<{ total: number }>("GET", `agents?query=${name}`)).total;
}

/** A participant that speaks AG2's own protocol, or produces for HPD; it ends with the tests of the file. */
export function participant(hub: Hub, ...args: string[]): ChildProcess {
  const child = spawn(binary, ["agent", "echo", ...args, "--hub", hub.url], { stdio: "ignore" });
  others.add(child);
  return child;
}
const others = new Set<ChildProcess>();

/** A participant whose every turn fails. */
export function failing(hub: Hub, name: string): ChildProcess {
  const child = spawn(binary, ["agent", "exec", "--name", name, "--hub", hub.url, "--", "false"], { stdio: "ignore" });
  others.add(child);
  return child;
}

/** A cluster of two nodes on this machine; the hub is the one that serves. */
export async function cluster(): Promise<{ hub: Hub; lose: () => void; end: () => Promise<void> }> {
  const hub = new Hub();
  const node = async (args: string[], env: Record<string, string>): Promise<[ChildProcess, { url: string; cluster: string }]> => {
    const child = spawn(binary, [...args, "--listen", "127.0.0.1:0", "-o", "json"], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
    others.add(child);
    let [said, errors] = ["", ""];
    child.stderr!.on("data", (part: Buffer) => (errors += part.toString()));
    return [child, await new Promise((resolve, reject) => {
      child.stdout!.on("data", (part: Buffer) => {
        said += part.toString();
        if (said.includes("\n")) resolve(JSON.parse(said.slice(0, said.indexOf("\n"))));
      });
      child.once("exit", (code) => reject(new Error(`the node ended with ${code}: ${errors}`)));
    })];
  };
  const [first, told] = await node(["cluster", "dev", hub.data, "--node-name", "ann"], {});
  hub.url = told.url;
  for (;;) if (await fetch(`${hub.url}/readyz`).then((answer) => answer.ok, () => false)) break; // it cuts connections off while it begins to serve
  const nats = /nats:\S+/.exec(told.cluster)![0];
  const [second] = await node(["serve", "--node-name", "ben", "--data", join(hub.data, "ben"), "--set", "cluster.assume_sync=true"], { PARLEY_CLUSTER_URL: nats });
  return {
    hub,
    lose: () => void second.kill("SIGKILL"),
    end: async () => {
      for (const child of [second, first]) {
        const gone = new Promise((resolve) => (child.exitCode === null && child.signalCode === null ? child.once("exit", resolve) : resolve(0)));
        child.kill("SIGKILL");
        await gone;
        others.delete(child);
      }
      rmSync(hub.data, { recursive: true, force: true });
    },
  };
}

/** A Python AG2 agent that asks before it acts, once it is bound. */
export async function asker(hub: Hub, name: string, token: string): Promise<void> {
  const python = process.env.AG2_PYTHON;
  assert.ok(python, "AG2_PYTHON names the interpreter of interop/ag2: make console sets it");
  const child = spawn(python, [join(import.meta.dirname, "../../interop/ag2/asker.py"), hub.url, name, token], { stdio: ["pipe", "pipe", "pipe"] });
  others.add(child);
  let errors = "";
  child.stderr.on("data", (part: Buffer) => (errors += part.toString()));
  await new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (part: Buffer) => { if (part.toString().startsWith("ready")) resolve(); });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the agent ended with ${code}: ${errors}`)));
  });
}

/** Takes an agent's work as an HPD producer does, and tells it: one call for each run. */
export async function producer(hub: Hub, agent: string): Promise<{ publish: (path: string, run: string, events: unknown[]) => Promise<void>; end: () => void }> {
  const abort = new AbortController();
  const answer = await fetch(`${hub.url}/hpd/agents/${agent}/work`, { headers: { Accept: "text/event-stream" }, signal: abort.signal });
  assert.equal(answer.status, 200);
  return {
    publish: async (path, run, events) => {
      const told = await fetch(`${hub.url}/hpd/agents/${agent}/${path}/events?runtimeRunId=${run}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(events) });
      assert.equal(told.status, 202, await told.text());
    },
    end: () => abort.abort(),
  };
}

/** A proxy that strips a prefix, and can go silent without closing what is open. */
export async function proxy(hub: Hub, prefix = "", changes = (part: Buffer): Buffer => part): Promise<{ url: string; silence: () => void; close: () => void }> {
  const open = new Set<ServerResponse>();
  const server = createServer((asked, answer) => {
    if (!asked.url!.startsWith(`${prefix}/`)) return void answer.writeHead(404).end();
    const path = asked.url!.slice(prefix.length);
    const there = request(hub.url + path, { method: asked.method, headers: { ...asked.headers, host: new URL(hub.url).host, ...(asked.headers.origin ? { origin: hub.url } : {}) } }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      answer.flushHeaders();
      const mute = { yes: false };
      if (path.startsWith("/v1/watch")) muted.push(mute);
      got.on("data", (part) => { if (!mute.yes) answer.write(changes(part)); });
      got.on("end", () => { if (!mute.yes) answer.end(); });
    });
    there.on("error", () => answer.destroy());
    answer.on("close", () => { open.delete(answer); there.destroy(); });
    open.add(answer);
    asked.pipe(there);
  });
  const muted: { yes: boolean }[] = [];
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    silence: () => { for (const m of muted.splice(0)) m.yes = true; },
    close: () => { for (const answer of open) answer.destroy(); server.close(); },
  };
}
