// A client that does on the wire what the stock AgentClient does, operation by
// operation, including what is odd about it: ids go raw into paths over HTTP,
// JSON calls have a content type also on GET, blocks are split on LF LF only,
// events are dispatched one after another through a queue that stops at the
// first rejection.
import WebSocket from "ws";

export type Json = any;
export type Event = { type: string; [member: string]: Json };
export type Generation = "branches" | "threads";
export type TransportName = "sse" | "websocket";
export type Scope = { agentId: string; sessionId: string; branchId?: string };

export class ApiError extends Error {
  constructor(message: string, readonly code: string, readonly status: number, readonly details?: Json) { super(message); }
}

const CODES: Record<number, string> = {
  400: "BAD_REQUEST", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND", 409: "CONFLICT", 422: "VALIDATION_ERROR",
  429: "RATE_LIMITED", 500: "INTERNAL_SERVER_ERROR", 502: "BAD_GATEWAY", 503: "SERVICE_UNAVAILABLE", 504: "GATEWAY_TIMEOUT",
};
const RESPONSES = new Set(["PERMISSION_RESPONSE", "CONTINUATION_RESPONSE", "CLARIFICATION_RESPONSE", "CLIENT_TOOL_INVOKE_RESPONSE"]);
const STATUSES = ["accepted", "notFound", "alreadyResolved", "timedOut", "cancelled", "responseTypeMismatch", "targetMismatch", "ambiguousRequest"];

export type RespondResult = { status: string; requestId?: string; message?: string; accepted: boolean };
export type ToolHandler = (args: Json) => Promise<unknown> | unknown;

export class Client {
  readonly base: string;
  readonly idName: "branchId" | "threadId";
  private transport?: Transport;
  private lastScope?: Scope;
  private queue: Promise<void> = Promise.resolve();
  private typed = new Map<string, ((e: Event) => unknown)[]>();
  private any: ((e: Event) => unknown)[] = [];
  private tools = new Map<string, ToolHandler>();
  readonly errors: Error[] = [];
  responderId?: string;
  groups: string[] = [];
  capabilities: string[] = [];

  constructor(base: string, readonly generation: Generation, readonly transportName: TransportName, readonly headers: Record<string, string> = {}) {
    this.base = base.endsWith("/") ? base.slice(0, -1) : base;
    this.idName = generation === "threads" ? "threadId" : "branchId";
  }

  // Paths: HTTP and SSE do not encode ids.
  private B(sid: string, bid: string) { return `/sessions/${sid}/${this.generation}/${bid}`; }
  private A(s: Scope) { return `/agents/${s.agentId}${this.B(s.sessionId, s.branchId ?? "main")}`; }

  async call(method: string, path: string, body?: Json): Promise<Response> {
    const headers: Record<string, string> = { ...this.headers };
    if (method !== "DELETE") headers["Content-Type"] = "application/json";
    return fetch(this.base + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  }

  async json(method: string, path: string, body?: Json): Promise<Json> {
    const res = await this.call(method, path, body);
    if (!res.ok) throw await this.error(res);
    return res.json();
  }

  private async error(res: Response): Promise<ApiError> {
    const text = await res.text();
    try {
      const body = JSON.parse(text);
      return new ApiError(body.title ?? body.error ?? body.message ?? res.statusText, CODES[res.status] ?? "UNKNOWN", res.status, body.errors);
    } catch {
      return new ApiError(`HTTP ${res.status}: ${text}`, "HTTP_ERROR", res.status);
    }
  }

  private async orNull(method: string, path: string): Promise<Json> {
    const res = await this.call(method, path);
    if (res.status === 404) { await res.body?.cancel(); return null; }
    if (!res.ok) throw await this.error(res);
    const text = await res.text();
    return text === "" ? null : JSON.parse(text);
  }

  private async gone(path: string) {
    const res = await this.call("DELETE", path);
    const text = await res.text();
    if (!res.ok) throw new ApiError(`${res.status} ${text}`, "HTTP_ERROR", res.status);
  }

  // Resources.
  listSessions(q: Record<string, string | number> = {}) {
    const query = new URLSearchParams(Object.entries(q).map(([k, v]) => [k, String(v)])).toString();
    return this.json("GET", "/sessions" + (query ? "?" + query : ""));
  }
  searchSessions(q: Json = {}) { return this.json("POST", "/sessions/search", q); }
  getSession(sid: string) { return this.orNull("GET", `/sessions/${sid}`); }
  createSession(body: Json = {}) { return this.json("POST", "/sessions", body); }
  updateSession(sid: string, metadata: Json) { return this.json("PATCH", `/sessions/${sid}`, { metadata }); }
  deleteSession(sid: string) { return this.gone(`/sessions/${sid}`); }
  listBranches(sid: string) { return this.json("GET", `/sessions/${sid}/${this.generation}`); }
  getBranch(sid: string, bid: string) { return this.orNull("GET", this.B(sid, bid)); }
  createBranch(agentId: string, sid: string, body: Json) { return this.json("POST", `/agents/${agentId}/sessions/${sid}/${this.generation}`, body); }
  forkBranch(s: Scope, body: Json) { return this.json("POST", this.A(s) + "/fork", body); }
  updateBranch(sid: string, bid: string, body: Json) { return this.json("PATCH", this.B(sid, bid), body); }
  deleteBranch(sid: string, bid: string, recursive = false) { return this.gone(this.B(sid, bid) + (recursive ? "?recursive=true" : "")); }
  getSiblings(sid: string, bid: string) { return this.json("GET", this.B(sid, bid) + "/siblings"); }
  async getBranchEvents(sid: string, bid: string): Promise<Event[]> {
    const res = await this.call("GET", this.B(sid, bid) + "/events");
    if (res.status === 404) {
      await res.body?.cancel();
      if (await this.getBranch(sid, bid)) return [];
      throw new ApiError("not found", "NOT_FOUND", 404);
    }
    if (!res.ok) throw await this.error(res);
    return res.json() as Promise<Event[]>;
  }
  getRuns(s: Scope) { return this.json("GET", this.A(s) + "/runs"); }
  getActiveRun(s: Scope) { return this.orNull("GET", this.A(s) + "/runs/active"); }
  getRun(s: Scope, id: string) { return this.orNull("GET", this.A(s) + "/runs/" + id); }
  listAgents() { return this.json("GET", "/agents"); }
  getAgent(id: string) { return this.orNull("GET", `/agents/${id}`); }
  createAgent(body: Json) { return this.json("POST", "/agents", body); }
  updateAgent(id: string, config: Json) { return this.json("PUT", `/agents/${id}`, { config }); }
  deleteAgent(id: string) { return this.gone(`/agents/${id}`); }
  async uploadContent(sid: string, bid: string, data: Blob, name?: string): Promise<Json> {
    const form = new FormData();
    form.append("file", data, name ?? "upload");
    const res = await fetch(this.base + this.B(sid, bid) + "/content", { method: "POST", headers: this.headers, body: form });
    if (!res.ok) throw await this.error(res);
    return res.json();
  }

  // Events.
  on(type: string, fn: (e: Event) => unknown) { this.typed.set(type, [...(this.typed.get(type) ?? []), fn]); }
  onAny(fn: (e: Event) => unknown) { this.any.push(fn); }
  registerTool(name: string, fn: ToolHandler) { this.tools.set(name, fn); }

  async start(s: Scope) {
    if (this.transport) throw new Error("already connected");
    this.lastScope = s;
    const deliver = (e: Event) => { this.queue = this.queue.then(() => this.dispatch(e)); this.queue.catch(() => {}); };
    const failed = (e: Error) => this.errors.push(e);
    this.transport = this.transportName === "sse"
      ? await SSE.open(this.base + this.A(s) + "/events/live", this.headers, deliver, failed)
      : await Socket.open(this.socketURL(s), deliver);
  }

  private socketURL(s: Scope) {
    const e = encodeURIComponent;
    return this.base.replace(/^http/, "ws") + `/agents/${e(s.agentId)}/sessions/${e(s.sessionId)}/${this.generation}/${e(s.branchId ?? "main")}/ws`;
  }

  stop() { this.transport?.close(); this.transport = undefined; }

  private async dispatch(e: Event) {
    for (const fn of this.typed.get(e.type) ?? []) await fn(e);
    for (const fn of this.any) await fn(e);
    if (e.type === "CLIENT_TOOL_INVOKE_REQUEST") await this.runTool(e);
  }

  private async runTool(e: Event) {
    const targeted = ["targetedResponder", "TargetedResponder", 1].includes(e.responsePolicy) && e.target;
    if (targeted) {
      const t = e.target;
      const has = [...this.capabilities, ...[...this.tools.keys()].map((n) => "client-tool:" + n)];
      if (t.responderId && t.responderId !== this.responderId) return;
      if (t.responderGroup && !this.groups.includes(t.responderGroup)) return;
      if ((t.requiredCapabilities ?? []).some((c: string) => !has.includes(c))) return;
    }
    const name = e.toolName.split(".").pop() as string;
    const response: Event = { type: "CLIENT_TOOL_INVOKE_RESPONSE", requestId: e.requestId, content: [], success: true };
    const handler = this.tools.get(name);
    if (!handler) {
      response.success = false;
      response.errorMessage = `Unknown client tool: ${e.toolName}`;
    } else {
      const value = await handler(e.arguments);
      response.content = [typeof value === "string" ? { type: "text", text: value } : { type: "json", value }];
    }
    response.capabilities = [...this.capabilities, ...[...this.tools.keys()].map((n) => "client-tool:" + n)];
    if (this.responderId) response.responderId = this.responderId;
    if (this.groups.length) response.responderGroup = this.groups[0];
    await this.send(response);
  }

  // submit resolves after all events queued so far were handled.
  async submit(event: Event, scope?: Scope): Promise<RespondResult | undefined> {
    const result = await this.send(event, scope);
    await this.queue;
    return result;
  }

  private async send(event: Event, scope?: Scope): Promise<RespondResult | undefined> {
    const s = scope ?? this.lastScope;
    if (!s) throw new Error("no scope");
    this.lastScope = s;
    const ids = { sessionId: s.sessionId, [this.idName]: s.branchId ?? "main", agentId: s.agentId };
    if (this.transportName === "websocket") {
      if (!(this.transport instanceof Socket) || !this.transport.connected) throw new Error("not connected");
      this.transport.send({ ...event, ...ids });
      return undefined;
    }
    if (RESPONSES.has(event.type)) return this.respond(s, { ...event, ...ids });
    const path = this.A(s) + (event.type === "INTERRUPTION_REQUEST" ? "/interrupt" : "/inputs");
    const body = event.type === "USER_TEXT_INPUT" ? { text: event.text, ...(event.runConfig ? { runConfig: event.runConfig } : {}) } : { ...event, ...ids };
    const res = await this.call("POST", path, body);
    if (!res.ok) throw new ApiError(`${res.status} ${await res.text()}`, "HTTP_ERROR", res.status);
    await res.body?.cancel();
    return undefined;
  }

  private async respond(s: Scope, body: Json): Promise<RespondResult> {
    const res = await this.call("POST", this.A(s) + "/responses", body);
    const text = await res.text();
    let parsed: Json;
    try { parsed = text === "" ? undefined : JSON.parse(text); } catch { parsed = undefined; }
    if (res.ok) return parsed && typeof parsed === "object" ? normalise(parsed) : { status: "accepted", accepted: true };
    if (res.status !== 409) throw new ApiError(parsed?.title ?? text, CODES[res.status] ?? "UNKNOWN", res.status, parsed?.errors);
    if (parsed?.result) return normalise(parsed.result);
    const first = parsed?.errors && Object.keys(parsed.errors)[0];
    return { status: first ? lower(first) : "alreadyResolved", accepted: false };
  }

  text(text: string, scope?: Scope, runConfig?: Json) { return this.submit({ type: "USER_TEXT_INPUT", text, ...(runConfig ? { runConfig } : {}) }, scope); }
  interrupt(reason = "Interrupted by client.", scope?: Scope) { return this.submit({ type: "INTERRUPTION_REQUEST", reason, source: "User" }, scope); }
}

const lower = (s: string) => s.charAt(0).toLowerCase() + s.slice(1);
function normalise(r: Json): RespondResult {
  const status = typeof r.status === "number" ? STATUSES[r.status] : lower(String(r.status ?? "notFound"));
  return { status, requestId: r.requestId, message: r.message, accepted: r.accepted ?? status === "accepted" };
}

interface Transport { close(): void }

class SSE implements Transport {
  private abort = new AbortController();
  static async open(url: string, headers: Record<string, string>, deliver: (e: Event) => void, failed: (e: Error) => void): Promise<SSE> {
    const t = new SSE();
    const res = await fetch(url, { headers: { ...headers, Accept: "text/event-stream" }, signal: t.abort.signal });
    if (!res.ok || !res.body) throw new Error(`HTTP ${res.status}: ${await res.text()}`);
    t.pump(res.body, deliver).catch((e) => { if (!t.abort.signal.aborted) failed(e as Error); });
    return t;
  }
  private async pump(body: ReadableStream<Uint8Array>, deliver: (e: Event) => void) {
    const decoder = new TextDecoder();
    const reader = body.getReader();
    let buffer = "";
    for (;;) {
      const { done, value } = await reader.read();
      buffer += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const blocks = buffer.split("\n\n"); // LF LF only
      buffer = done ? "" : blocks.pop() ?? "";
      for (const block of blocks) parseBlock(block, deliver);
      if (done) return;
    }
  }
  close() { this.abort.abort(); }
}

export function parseBlock(block: string, deliver: (e: Event) => void) {
  const data = block.split("\n").filter((l) => l.startsWith("data:")).map((l) => l.slice(l.startsWith("data: ") ? 6 : 5)).join("\n");
  if (data === "") return;
  let event: Json;
  try { event = JSON.parse(data); } catch { return; }
  if (typeof event?.type === "string") deliver(event as Event);
}

class Socket implements Transport {
  private constructor(private ws: WebSocket) {}
  static open(url: string, deliver: (e: Event) => void): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const ws = new WebSocket(url);
      ws.on("open", () => resolve(new Socket(ws)));
      ws.on("error", reject);
      ws.on("message", (data) => { let e: Json; try { e = JSON.parse(String(data)); } catch { return; } deliver(e); }); // no check of type
    });
  }
  get connected() { return this.ws.readyState === WebSocket.OPEN; }
  send(frame: Json) { this.ws.send(JSON.stringify(frame)); }
  close() { this.ws.close(); } // without a status code
}
