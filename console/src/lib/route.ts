// Addresses of the page: #/channels/ID?at=10&why. Everything after # is ours,
// so the page works below any path.

export interface Route {
  path: string[];
  query: URLSearchParams;
}

export function parse(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const path = (mark < 0 ? text : text.slice(0, mark)).split("/").filter(Boolean).map(decode);
  return { path, query: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)) };
}

export function format(path: string[], query?: URLSearchParams | Record<string, string | undefined>): string {
  const params = new URLSearchParams();
  const pairs = query instanceof URLSearchParams ? [...query] : Object.entries(query ?? {});
  for (const [key, value] of pairs) if (value !== undefined) params.append(key, value);
  // A flag such as `why` reads better without its empty value.
  const text = params.toString().replaceAll(/=(?=&|$)/g, "");
  return "#/" + path.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
