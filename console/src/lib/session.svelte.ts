import { get, onSignedOut, proof, send, words, Refused } from "./api.ts";
import { when } from "./time.ts";
import type { Session } from "./types.ts";
import { watch } from "./watch.svelte.ts";

let current = $state.raw<Session | null>(null);
let why = $state("");
let failed = $state("");

export const session = {
  /** Who the hub says we are; null until it has answered. */
  get now() {
    return current;
  },
  /** Why the page asks to sign in again. */
  get why() {
    return why;
  },
  get failed() {
    return failed;
  },
  get operator(): boolean {
    return current?.role === "operator";
  },
};

export async function load(): Promise<void> {
  try {
    const code = takeCode();
    if (code) await signIn({ code }).catch((err: unknown) => (why = words(err)));
    current = await get<Session>("v1/session");
    failed = "";
  } catch (err) {
    failed = words(err);
  }
}

/** A code from `parley console` stands in the fragment, once. */
function takeCode(): string {
  const found = /^#\/?code=([\w.~-]+)/.exec(location.hash);
  if (!found) return "";
  location.replace("#/now");
  return found[1]!;
}

export async function signIn(by: { token: string } | { code: string }): Promise<void> {
  const made = await send<{ proof: string }>("POST", "v1/session", by);
  proof.set(made.proof);
  why = "";
  current = await get<Session>("v1/session");
}

export async function signOut(): Promise<void> {
  try {
    await send("DELETE", "v1/session");
  } catch (err) {
    if (!(err instanceof Refused)) throw err;
  }
  proof.set("");
  why = "";
  current = await get<Session>("v1/session");
}

/** Why the hub does not know us any more. The page's clock stopped with its stream, a
 * moment before. */
function reason(was: Session): string {
  if (was.via === "loopback") return "Keys exist by now: sign in with one.";
  if (was.expires_at && Date.parse(was.expires_at) <= watch.now + 5000) return `Signed out: the session lasted until ${when(was.expires_at, watch.now)}.`;
  return "Your key was revoked, or this session was ended.";
}

onSignedOut(() => {
  if (!current || current.role === "anonymous") return;
  why = reason(current);
  proof.set("");
  current = { ...current, role: "anonymous", may: [] };
});
