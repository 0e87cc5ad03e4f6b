import { format, parse, type Route } from "./route.ts";

let route = $state.raw<Route>(parse(location.hash));

addEventListener("hashchange", () => (route = parse(location.hash)));

export const here = {
  get path() {
    return route.path;
  },
  get query() {
    return route.query;
  },
};

/** Goes to another screen; back returns. */
export function go(hash: string): void {
  location.hash = hash;
}

/** Changes the address of this screen without a step in the history. */
export function refine(changes: Record<string, string | undefined>): void {
  const query = new URLSearchParams(route.query);
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) query.delete(key);
    else query.set(key, value);
  }
  const hash = format(route.path, query);
  history.replaceState(history.state, "", hash);
  route = parse(hash);
}
