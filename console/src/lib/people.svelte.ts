// Names of agents, asked for once and kept for as long as the page is open.
import { get } from "./api.ts";
import type { Agent } from "./types.ts";
import { short } from "./time.ts";
import { visible } from "./text.ts";

const most = 5000;
let names = $state.raw(new Map<string, { name: string; person: boolean }>());
const asked = new Set<string>();
let waiting: string[] = [];

export function learn(known: Iterable<[string, string]>, person = false): void {
  const next = new Map(names);
  for (const [id, name] of known) next.set(id, { name: visible(name), person: person || (next.get(id)?.person ?? false) });
  while (next.size > most) next.delete(next.keys().next().value!);
  names = next;
}

export function learnPerson(id: string, name: string, kind: string | null | undefined): void {
  const known = names.get(id);
  const person = kind === "human";
  if (known && known.name === visible(name) && known.person === person) return;
  learn([[id, name]], person);
}

/** The name of an agent; the end of its id until the name is known. */
export function nameOf(id: string): string {
  if (id === "" || id === "system") return "the hub";
  const known = names.get(id);
  if (known) return known.name;
  if (!asked.has(id) && /^[0-9a-f]{32}$/.test(id)) {
    asked.add(id);
    waiting.push(id);
    if (waiting.length === 1) queueMicrotask(ask);
  }
  return short(id);
}

export function isPerson(id: string): boolean {
  return names.get(id)?.person ?? false;
}

async function ask(): Promise<void> {
  const ids = waiting.filter((id) => !names.has(id)); // what is shown may have told it
  waiting = [];
  for (const id of ids.slice(0, 50)) {
    try {
      const agent = await get<Agent>(`v1/agents/${id}`);
      learnPerson(id, agent.passport.name, agent.passport.kind);
    } catch {
      // It was removed, or may not be seen: its id stays.
    }
  }
}

/** A text with names in place of ids. */
export function named(text: string): string {
  return text.replace(/\b[0-9a-f]{32}\b/g, nameOf);
}
