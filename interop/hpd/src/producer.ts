// A remote producer: it takes inputs from the work stream and publishes what a
// script says.
import { type Event, type Json } from "./client.js";

export type Work = { runtimeRunId: string; sessionId: string; branchId: string; messageTurnId: string; messages: Json[]; runConfig?: Json; resumed: boolean };

export class Producer {
  private abort = new AbortController();
  private answers = new Map<string, (e: Event) => void>();
  readonly interrupted = new Map<string, () => void>();
  constructor(readonly base: string, readonly agentId: string, readonly run: (p: Producer, w: Work) => Promise<void>) {}

  async start() {
    const res = await fetch(`${this.base}/agents/${this.agentId}/work`, { headers: { Accept: "text/event-stream" }, signal: this.abort.signal });
    if (!res.ok || !res.body) throw new Error(`work: HTTP ${res.status} ${await res.text()}`);
    void this.pump(res.body).catch(() => {});
  }
  stop() { this.abort.abort(); }

  private async pump(body: ReadableStream<Uint8Array>) {
    const decoder = new TextDecoder();
    let buffer = "";
    for await (const chunk of body as any) {
      buffer += decoder.decode(chunk, { stream: true });
      let at: number;
      while ((at = buffer.indexOf("\n\n")) >= 0) {
        const lines = buffer.slice(0, at).split("\n");
        buffer = buffer.slice(at + 2);
        const name = lines.find((l) => l.startsWith("event: "))?.slice(7);
        const data = lines.filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).join("\n");
        if (name && data) this.take(name, JSON.parse(data));
      }
    }
  }
  private take(name: string, data: Json) {
    if (name === "input") void this.work(data as Work);
    if (name === "response") this.answers.get(data.permissionId ?? data.continuationId ?? data.requestId)?.(data);
    if (name === "interrupt") this.interrupted.get(data.runtimeRunId)?.();
  }
  private async work(w: Work) {
    try {
      await this.run(this, w);
      await this.complete(w, { status: "completed" });
    } catch (e) {
      await this.complete(w, { status: "failed", error: { code: "ScriptError", message: String(e) } });
    }
  }
  private A(w: Work) { return `${this.base}/agents/${this.agentId}/sessions/${w.sessionId}/branches/${encodeURIComponent(w.branchId)}`; }
  async post(w: Work, path: string, body: Json) {
    const res = await fetch(this.A(w) + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const text = await res.text();
    if (!res.ok) throw new Error(`${path}: HTTP ${res.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }
  publish(w: Work, ...events: Event[]) { return this.post(w, `/events?runtimeRunId=${w.runtimeRunId}`, events); }
  complete(w: Work, body: Json) { return this.post(w, `/runs/${w.runtimeRunId}/complete`, body).catch(() => {}); }
  async ask(w: Work, request: Event): Promise<Event> {
    const id = request.permissionId ?? request.continuationId ?? request.requestId;
    const answer = new Promise<Event>((r) => this.answers.set(id, r));
    await this.post(w, `/requests?runtimeRunId=${w.runtimeRunId}`, request);
    return answer;
  }
}

// echo streams the input back word by word.
export async function echo(p: Producer, w: Work) {
  const messageId = "m-" + w.runtimeRunId;
  const text = w.messages.flatMap((m) => m.contents).map((c) => c.text ?? "").join("");
  await p.publish(w, { type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
  for (const word of text.split(/(?<= )/)) await p.publish(w, { type: "TEXT_DELTA", messageId, text: word });
  await p.publish(w, { type: "TEXT_MESSAGE_END", messageId }, { type: "CARGO_MANIFEST_READY", tons: 7 });
}
