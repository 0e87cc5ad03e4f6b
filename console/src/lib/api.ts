// The one way to the hub: relative addresses, the session's proof, typed refusals.

/** What the hub said instead of an answer. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly body: Record<string, unknown>;
  readonly retryAfter: number;

  constructor(status: number, body: Record<string, unknown>, retryAfter = 0) {
    super(String(body.detail ?? body.title ?? `the hub answered ${status}`));
    this.status = status;
    this.code = String(body.code ?? "");
    this.body = body;
    this.retryAfter = retryAfter;
  }
}

const root = new URL("..", document.baseURI);

// The key names the path, because several hubs may stand behind one host.
const proofKey = `parley-proof ${root.pathname}`;

export const proof = {
  get: () => localStorage.getItem(proofKey) ?? "",
  set: (value: string) => (value ? localStorage.setItem(proofKey, value) : localStorage.removeItem(proofKey)),
};

let signedOut = () => {};

/** Called when the hub no longer knows who we are. */
export function onSignedOut(tell: () => void): void {
  signedOut = tell;
}

export type Query = Record<string, string | number | boolean | string[] | undefined>;

export function address(path: string, query: Query = {}): string {
  const url = new URL(path, root);
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined || value === "" || value === false) continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(key, String(one));
  }
  return url.href;
}

export async function call(method: string, path: string, options: { query?: Query; body?: unknown; signal?: AbortSignal; headers?: Record<string, string> } = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  if (proof.get()) headers["Parley-Session"] = proof.get();
  const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (options.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(options.body);
  }
  if (options.signal) init.signal = options.signal;
  const answer = await fetch(address(path, options.query), init);
  if (answer.ok) return answer;
  let body: Record<string, unknown> = {};
  try {
    body = (await answer.json()) as Record<string, unknown>;
  } catch {
    // A proxy may answer with something else than a problem.
  }
  const refusal = new Refused(answer.status, body, Number(answer.headers.get("Retry-After") ?? 0));
  if (answer.status === 401 && !path.startsWith("v1/session")) signedOut();
  throw refusal;
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const answer = await call("GET", path, signal ? { query, signal } : { query });
  return (await answer.json()) as T;
}

/** A list of a dialect that tells in a header how many there are in all. */
export async function getCounted<T>(path: string, query: Query, signal: AbortSignal): Promise<{ value: T; total: number | undefined; exact: boolean }> {
  const answer = await call("GET", path, { query: { ...query, count: true }, signal });
  const said = answer.headers.get("Parley-Total");
  return { value: (await answer.json()) as T, total: said ? parseInt(said) : undefined, exact: !said?.endsWith("+") };
}

export async function send<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
  const answer = await call(method, path, headers ? { body, headers } : { body });
  const text = await answer.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/** A refusal in the hub's own words, or what went wrong on the way to it. */
export function words(err: unknown): string {
  if (err instanceof Refused) return err.message;
  if (err instanceof TypeError) return "The hub cannot be reached.";
  return err instanceof Error ? err.message : String(err);
}
