/** Draws a map as SVG: people, then agents in the order in which they act, then targets; names are text (REPORT-D-2). */

import { beginningOf, spelledOut } from "../../audit/safe-text.ts";
import { subjectIn, type Use } from "../../audit/uses.ts";
import { type Html, html } from "../../spec/html.ts";
import type { NodeKey } from "./gather.ts";
import { ANY_SUBJECT, type MapData, type MapEdge, type MapNode } from "./model.ts";

/** A column with more nodes is drawn in groups. */
const COLUMN_MAX = 40;
/** Agents behind one another; those further on stand in the last of these columns. */
const HOPS_SHOWN = 4;

const [WIDTH, HEIGHT, GAP, BETWEEN, EDGE] = [216, 44, 12, 96, 8] as const;
const LABEL_CHARS = 30;

export const shown = (text: string): string => spelledOut(text, /[^\S ]/g);

export const nameOfNode = ({ kind, name }: Pick<MapNode, "kind" | "name">): string => {
  if (kind !== "person") return name;
  const { iss, sub } = subjectIn(name);
  return sub === ANY_SUBJECT ? `any user of ${iss}` : sub;
};

type Drawn = MapNode & { column: number; y: number; members: number };

/** `pageOf`: where a node leads; a group leads to its list. */
export function drawMap(
  data: MapData,
  pageOf: (node: MapNode, members: number) => string | undefined,
  self?: NodeKey,
): Html {
  const columns = columnsOf(data);
  const { nodes, edges } = grouped(data, columns);
  const placed = place(nodes, edges, columns);
  const used = [...new Set([...placed.values()].map(({ column }) => column))].sort((a, b) => a - b);
  const xOf = ({ column }: Drawn): number => EDGE + used.indexOf(column) * (WIDTH + BETWEEN);
  const width = 2 * EDGE + used.length * WIDTH + Math.max(0, used.length - 1) * BETWEEN;
  const height = 2 * EDGE + Math.max(HEIGHT, ...[...placed.values()].map(({ y }) => y + HEIGHT));
  const most = Math.max(1, ...edges.map(({ use }) => use?.count ?? 0));
  const lines = edges
    .toSorted((a, b) => (a.use?.count ?? -1) - (b.use?.count ?? -1))
    .map((edge) => {
      const [from, to] = [placed.get(edge.from), placed.get(edge.to)];
      return from === undefined || to === undefined ? html`` : drawEdge(edge, from, to, xOf, most);
    });
  const boxes = [...placed.values()].map((node) => drawNode(node, xOf(node), pageOf, node.key === self));
  return html`<svg class="map" xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="Map: people, agents and targets from left to right">
${lines}
${boxes}
</svg>`;
}

/** Of each agent how many others act before it; people stand before all of them, targets behind. */
function columnsOf({ nodes, edges }: MapData): ReadonlyMap<NodeKey, number> {
  const columns = new Map<NodeKey, number>();
  for (const { key, kind } of nodes.values())
    columns.set(key, kind === "person" ? 0 : kind === "agent" ? 1 : HOPS_SHOWN + 1);
  const hops = edges.filter(({ from, to }) => from.startsWith("agent ") && to.startsWith("agent "));
  for (let round = 1; round < HOPS_SHOWN; round++) {
    for (const { from, to } of hops) {
      const next = Math.min(HOPS_SHOWN, (columns.get(from) ?? 1) + 1);
      if (next > (columns.get(to) ?? 1) && next <= round + 1) columns.set(to, next);
    }
  }
  return columns;
}

// --- groups -------------------------------------------------------------------------------------------------------

/** The name of the group of a node: its issuer, or the beginning of its path, shorter with each level. */
function groupOf({ kind, name }: MapNode, level: number): string {
  if (kind === "person") return `${subjectIn(name).iss} ${ANY_SUBJECT}`;
  const [scheme = "", , place = "", ...path] = name.split("/");
  const isPath = scheme.endsWith(":") && place !== "";
  if (!isPath) return `${name.slice(0, Math.max(1, 4 - level))}…`;
  const kept = path.slice(0, Math.max(0, path.length - 1 - level));
  return `${[scheme, "", place, ...kept].join("/")}/*`;
}

function grouped({ nodes, edges }: MapData, columns: ReadonlyMap<NodeKey, number>) {
  const as = new Map<NodeKey, NodeKey>();
  const drawn = new Map<NodeKey, MapNode & { members: number; column: number }>();
  for (const [column, all] of Map.groupBy(nodes.values(), ({ key }) => columns.get(key) ?? 0)) {
    let level = -1;
    const nameOf = (node: MapNode): string => (level < 0 ? node.name : groupOf(node, level));
    while (level < 3 && new Set(all.map(nameOf)).size > COLUMN_MAX) level++;
    const groups = [...Map.groupBy(all, nameOf)];
    const kept = groups.length > COLUMN_MAX ? groups.slice(0, COLUMN_MAX - 1) : groups;
    const rest = groups.slice(kept.length).flatMap(([, members]) => members);
    const [one] = rest;
    const cells = one === undefined ? kept : [...kept, [`${rest.length} others`, rest] as const];
    for (const [name, members] of cells) {
      const [first] = members;
      if (first === undefined) continue;
      const key: NodeKey = members.length === 1 ? first.key : `${first.kind} ${name}`;
      const node = members.length === 1 ? first : { ...first, key, name, title: undefined };
      drawn.set(key, { ...node, members: members.length, column });
      for (const member of members) as.set(member.key, key);
    }
  }
  return { nodes: drawn, edges: merged(edges, as) };
}

function merged(edges: readonly MapEdge[], as: ReadonlyMap<NodeKey, NodeKey>): readonly MapEdge[] {
  const all = new Map<string, MapEdge>();
  for (const edge of edges) {
    const [from, to] = [as.get(edge.from) ?? edge.from, as.get(edge.to) ?? edge.to];
    if (from === to) continue;
    const key = JSON.stringify([from, to]);
    all.set(key, { from, to, use: sumOf(all.get(key)?.use, edge.use) });
  }
  return [...all.values()];
}

const sumOf = (one: Use | undefined, other: Use | undefined): Use | undefined =>
  one === undefined || other === undefined
    ? (one ?? other)
    : {
        count: one.count + other.count,
        firstMs: Math.min(one.firstMs, other.firstMs),
        lastMs: Math.max(one.lastMs, other.lastMs),
      };

// --- where things stand -------------------------------------------------------------------------------------------

/** In each column by the mean height of what leads there, so that few lines cross. */
function place(
  nodes: ReturnType<typeof grouped>["nodes"],
  edges: readonly MapEdge[],
  columns: ReadonlyMap<NodeKey, number>,
): ReadonlyMap<NodeKey, Drawn> {
  const into = Map.groupBy(edges, ({ to }) => to);
  const busy = new Map<NodeKey, number>();
  for (const { from, to, use } of edges)
    for (const key of [from, to]) busy.set(key, (busy.get(key) ?? 0) + (use?.count ?? 0));
  const placed = new Map<NodeKey, Drawn>();
  const byColumn = Map.groupBy(nodes.values(), ({ column }) => column);
  const tallest = Math.max(0, ...[...byColumn.values()].map((all) => all.length));
  for (const column of [...new Set([...columns.values()])].sort((a, b) => a - b)) {
    const all = byColumn.get(column) ?? [];
    const heightOf = (key: NodeKey): number => {
      const before = (into.get(key) ?? []).flatMap(({ from }) => placed.get(from)?.y ?? []);
      return before.length === 0 ? Number.POSITIVE_INFINITY : before.reduce((a, b) => a + b) / before.length;
    };
    const order = (a: MapNode, b: MapNode): number => {
      const [one, other] = [heightOf(a.key), heightOf(b.key)];
      return one === other ? (busy.get(b.key) ?? 0) - (busy.get(a.key) ?? 0) : one - other;
    };
    const top = EDGE + ((tallest - all.length) * (HEIGHT + GAP)) / 2;
    for (const [index, node] of all.toSorted(order).entries())
      placed.set(node.key, { ...node, y: top + index * (HEIGHT + GAP) });
  }
  return placed;
}

// --- drawing ------------------------------------------------------------------------------------------------------

/** The last part of a long name is what tells it apart. */
function short(text: string): string {
  const whole = shown(text);
  const letters = [...whole];
  return letters.length <= LABEL_CHARS ? whole : `…${letters.slice(1 - LABEL_CHARS).join("")}`;
}

function drawNode(
  node: Drawn,
  x: number,
  pageOf: (node: MapNode, members: number) => string | undefined,
  isSelf: boolean,
): Html {
  const { kind, y, members, title, isPartner } = node;
  const name = nameOfNode(node);
  const [big, small] = labelOf(node, name);
  const middle = x + 14;
  const classes = ["n", kind, ...(isPartner ? ["partner"] : []), ...(isSelf ? ["self"] : [])].join(" ");
  const box = html`<g class="${classes}"><title>${shown(title === undefined ? name : `${title} (${name})`)}</title><rect x="${x}" y="${y}" width="${WIDTH}" height="${HEIGHT}" rx="${kind === "person" ? HEIGHT / 2 : 10}"/><text x="${middle}" y="${y + 19}" class="big">${beginningOf(short(big), LABEL_CHARS)}</text><text x="${middle}" y="${y + 34}" class="small">${isPartner ? "partner · " : ""}${short(small)}</text></g>`;
  const href = pageOf(node, members);
  return href === undefined ? box : html`<a href="${href}">${box}</a>`;
}

/** A title above the name, or what tells the name apart above where it is from. */
function labelOf({ kind, name: key, title, members }: Drawn, name: string): readonly [string, string] {
  const iss = kind === "person" ? subjectIn(key).iss.replace("https://", "") : undefined;
  if (members > 1) return [`${members} ${kind === "person" ? "people" : `${kind}s`}`, iss ?? name];
  if (iss !== undefined) return [subjectIn(key).sub === ANY_SUBJECT ? "any user" : name, iss];
  const big = title ?? lastPart(name);
  return [big, big === name ? (kind === "target" ? "API" : "client") : name];
}

const lastPart = (name: string): string => {
  const parts = name.split("/");
  const last = parts.at(-1) ?? name;
  return last === "" || last === "*" ? parts.slice(-2).join("/") : last;
};

function drawEdge(
  { use }: MapEdge,
  from: Drawn,
  to: Drawn,
  xOf: (node: Drawn) => number,
  most: number,
): Html {
  const [y1, y2] = [from.y + HEIGHT / 2, to.y + HEIGHT / 2];
  const isBack = to.column <= from.column;
  const [x1, x2] = [xOf(from) + WIDTH, isBack ? xOf(to) + WIDTH : xOf(to)];
  const bend = isBack ? BETWEEN / 1.5 : Math.max(BETWEEN / 2, (x2 - x1) / 2);
  const path = `M${x1} ${y1}C${x1 + bend} ${y1} ${isBack ? x2 + bend : x2 - bend} ${y2} ${x2} ${y2}`;
  const weight =
    use === undefined ? 0 : 1 + Math.round((5 * Math.log(use.count)) / Math.max(1, Math.log(most)));
  const says = use === undefined ? "allowed, never used" : `${use.count} requests`;
  return html`<path class="${use === undefined ? "e unused" : `e w${Math.min(6, weight)}`}" d="${path}"><title>${shown(nameOfNode(from))} → ${shown(nameOfNode(to))}: ${says}</title></path>`;
}
