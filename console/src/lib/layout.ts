// Where a graph's nodes and edges are drawn: left to right.
import { Graph, layout as place } from "@dagrejs/dagre";
import type { Graph as Workflow, GraphEdge, GraphNode } from "./types.ts";

export const most = 200;

export interface Placed {
  left: number;
  top: number;
  width: number;
  height: number;
  nodes: { node: GraphNode; x: number; y: number; width: number; height: number }[];
  edges: { edge: GraphEdge; path: string; x: number; y: number }[];
}

export function layout(graph: Workflow): Placed {
  const g = new Graph({ multigraph: true });
  g.setGraph({ rankdir: "LR", nodesep: 24, ranksep: 56, marginx: 8, marginy: 8 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) g.setNode(node.id, { width: Math.min(180, 32 + node.label.length * 7), height: 32 });
  for (const edge of graph.edges) g.setEdge(edge.from, edge.to, { width: 24, height: 12 }, edge.id);
  place(g);
  // Edges may bend around what its size was computed from.
  const size = g.graph() as { width?: number; height?: number };
  const bends = graph.edges.flatMap((edge) => (g.edge({ v: edge.from, w: edge.to, name: edge.id }) as { points: { x: number; y: number }[] }).points);
  const box = bends.reduce((b, p) => ({ left: Math.min(b.left, p.x - 8), top: Math.min(b.top, p.y - 8), right: Math.max(b.right, p.x + 8), bottom: Math.max(b.bottom, p.y + 8) }), { left: 0, top: 0, right: size.width ?? 0, bottom: size.height ?? 0 });
  return {
    left: Math.floor(box.left),
    top: Math.floor(box.top),
    width: Math.ceil(box.right - box.left),
    height: Math.ceil(box.bottom - box.top),
    nodes: graph.nodes.map((node) => {
      const at = g.node(node.id) as { x: number; y: number; width: number; height: number };
      return { node, x: at.x, y: at.y, width: at.width, height: at.height };
    }),
    edges: graph.edges.map((edge) => {
      const at = g.edge({ v: edge.from, w: edge.to, name: edge.id }) as { points: { x: number; y: number }[]; x?: number; y?: number };
      const path = at.points.map((p, i) => `${i ? "L" : "M"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join("");
      const middle = at.points[Math.floor(at.points.length / 2)]!;
      return { edge, path, x: at.x ?? middle.x, y: at.y ?? middle.y };
    }),
  };
}
