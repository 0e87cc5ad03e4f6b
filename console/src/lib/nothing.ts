// What a list says when nothing matches. Pure.
import { line } from "./text.ts";

export interface ChannelFilters {
  q: string;
  state: string[];
  type: string;
  waiting_for: string;
  overdue: boolean;
}

/** "No active channel of type workflow waits for hana." */
export function noChannel(f: ChannelFilters): string {
  const states = f.state.length ? ` ${f.state.join(" or ")}` : "";
  const type = f.type ? ` of type ${line(f.type, 40)}` : "";
  const words = f.q ? ` with “${line(f.q, 60)}”` : "";
  const waits = f.waiting_for ? [`waits for ${line(f.waiting_for, 60)}`] : [];
  const does = [...waits, ...(f.overdue ? ["is overdue"] : [])].join(" and ") || "exists";
  return `No${states} channel${type}${words} ${does}.`;
}
