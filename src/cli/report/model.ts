/** The data behind every page of a report (REPORT-D-1): what the events tell, beside what the policy in force allows. */
import { byUse, subjectIn, subjectName, type Use, type Uses } from "../../audit/uses.ts";
import { decideRequest } from "../../policy/decision.ts";
import { type Ladder, ladderOf } from "../../policy/explanation.ts";
import { askedOf } from "../../policy/facts.ts";
import { searchReach, stepsTo } from "../../policy/reach.ts";
import type { World } from "../../policy/reach-moves.ts";
import type { Gathered } from "../../policy/replay.ts";
import { type Suggestion, smallestChange } from "../../policy/smallest-change.ts";
import { inLanguage } from "../../policy/worded.ts";
import { agentOf, inWords } from "../../settings/agents.ts";
import type { Settings } from "../../settings/settings.ts";
import { matchesPattern } from "../../spec/spiffe/id.ts";
import {
  type AgentUse,
  edgeKey,
  type Kind,
  type NodeKey,
  type RefusedUse,
  type TrailCounts,
} from "./gather.ts";

export type MapNode = {
  key: NodeKey;
  kind: Kind;
  name: string;
  title?: string | undefined;
  isPartner: boolean;
};
/** `use` is absent for what is allowed and was never used. */
export type MapEdge = { from: NodeKey; to: NodeKey; use?: Use | undefined };
export type MapData = { nodes: ReadonlyMap<NodeKey, MapNode>; edges: readonly MapEdge[] };
/** With the edges of each node, so that a page of one of many nodes does not go through all of them. */
export type WholeMap = MapData & Record<"into" | "outOf", ReadonlyMap<NodeKey, readonly MapEdge[]>>;

export type AgentRow = {
  id: string;
  title?: string | undefined;
  purpose?: string | undefined;
  owner?: string | undefined;
  contact?: string | undefined;
  /** How it proves itself: as it was seen, or as it is configured. */
  methods: readonly string[];
  used?: AgentUse | undefined;
  /** What it may reach by its own requests: a target with the scopes. */
  reach: ReadonlyMap<string, ReadonlySet<string>>;
  living?: number | undefined;
};

export type RefusalRow = Omit<RefusedUse, "event"> & {
  lastRequest?: string | undefined;
  /** The policy in force would allow it. */
  allowedNow: boolean;
  /** Absent where the policy did not refuse it. */
  judged?: { ladder?: Ladder | undefined; suggestion: Suggestion | undefined };
};

export type Model = {
  issuer: string;
  digest: string;
  madeMs: number;
  fromMs: number;
  toMs: number;
  counted: TrailCounts;
  map: WholeMap;
  agents: readonly AgentRow[];
  refusals: readonly RefusalRow[];
  rules: readonly { id: string; mode: string; targets: readonly string[]; use?: Use | undefined }[];
};

/** So many refusals are decided again. */
const JUDGED_MAX = 150;

export function modelOf(
  settings: Settings,
  world: World,
  trail: Gathered,
  counted: TrailCounts,
  times: Pick<Model, "madeMs" | "fromMs" | "toMs">,
): Model {
  const { policy, issuer } = settings;
  const allowed = allowedBy(world);
  const rules = [...policy.rules.values()].map(({ id, allow: mode, targets }) => ({
    id,
    mode,
    targets,
    use: counted.rules.by.get(id),
  }));
  const refusals = [...counted.refusals.values()]
    .sort((a, b) => b.use.count - a.use.count || b.use.lastMs - a.use.lastMs)
    .map((one, index) => refusalOf(settings, trail, one, index < JUDGED_MAX));
  return {
    ...times,
    issuer,
    digest: policy.digest,
    counted,
    map: mapOf(settings, counted, allowed.edges),
    agents: agentsOf(settings, counted, allowed.reach),
    refusals,
    rules: rules.sort((a, b) => (b.use?.count ?? 0) - (a.use?.count ?? 0) || (a.id < b.id ? -1 : 1)),
  };
}

// --- what is allowed ----------------------------------------------------------------------------------------------

type Allowed = { edges: ReadonlySet<string>; reach: ReadonlyMap<string, Map<string, Set<string>>> };

export const ANY_SUBJECT = "*";

/** The edges of every way that some order of requests leads to, and the targets of each caller. */
function allowedBy(world: World): Allowed {
  const edges = new Set<string>();
  const reach = new Map<string, Map<string, Set<string>>>();
  for (const one of searchReach(world).grants) {
    const steps = stepsTo(one);
    const isAny = world.outsiders.some(({ iss, any }) => iss === one.origin.iss && any === one.origin.sub);
    const { iss, sub } = one.origin;
    const person: NodeKey = `person ${subjectName({ iss, sub: isAny ? ANY_SUBJECT : sub })}`;
    let from: NodeKey | undefined = steps[0]?.subject === undefined ? undefined : person;
    for (const { caller } of steps) {
      const to: NodeKey = `agent ${caller.label}`;
      if (from !== undefined && from !== to) edges.add(edgeKey(from, to));
      from = to;
    }
    const target = one.target.names[0] ?? "";
    if (from !== undefined) edges.add(edgeKey(from, `target ${target}`));
    const label = steps.at(-1)?.caller.label ?? "";
    const of = reach.get(label) ?? new Map<string, Set<string>>();
    of.set(target, new Set([...(of.get(target) ?? []), ...one.scopes]));
    reach.set(label, of);
  }
  return { edges, reach };
}

// --- the map ------------------------------------------------------------------------------------------------------

const splitKey = (key: NodeKey): readonly [Kind, string] => {
  const at = key.indexOf(" ");
  return [key.slice(0, at) as Kind, key.slice(at + 1)];
};

/** Whether the node that an edge of the policy names is, or stands for, this one. */
function standsFor(allowed: NodeKey, used: NodeKey): boolean {
  const [kind, name] = splitKey(allowed);
  const [other, id] = splitKey(used);
  if (kind !== other) return false;
  if (kind === "person") {
    const { iss, sub } = subjectIn(name);
    return name === id || (sub === ANY_SUBJECT && subjectIn(id).iss === iss);
  }
  return kind === "agent" ? matchesPattern(name, id) : name === id;
}

export const endsOf = (edge: string): readonly [NodeKey, NodeKey] => JSON.parse(edge);

function mapOf(settings: Settings, { edges }: TrailCounts, allowed: ReadonlySet<string>): WholeMap {
  const firstName = (key: NodeKey): NodeKey => {
    const [kind, name] = splitKey(key);
    const target = kind === "target" ? settings.policy.targets.get(name) : undefined;
    return target === undefined ? key : `target ${target.names[0] ?? name}`;
  };
  const used = [...edges.by].map(([edge, use]): Required<MapEdge> => {
    const [from, to] = endsOf(edge);
    return { from: firstName(from), to: firstName(to), use };
  });
  const usedTo = Map.groupBy(used, ({ to }) => splitKey(to)[0]);
  const unused = [...allowed].map(endsOf).filter(([from, to]) => {
    const near = usedTo.get(splitKey(to)[0]) ?? [];
    return !near.some((one) => standsFor(to, one.to) && standsFor(from, one.from));
  });
  const all: readonly MapEdge[] = [...used, ...unused.map(([from, to]) => ({ from, to }))];
  const nodes = new Map<NodeKey, MapNode>();
  for (const { from, to } of all) for (const key of [from, to]) nodes.set(key, nodeOf(settings, key));
  const [into, outOf] = [Map.groupBy(all, ({ to }) => to), Map.groupBy(all, ({ from }) => from)];
  return { nodes, edges: all, into, outOf };
}

function nodeOf({ agents, policy }: Settings, key: NodeKey): MapNode {
  const [kind, name] = splitKey(key);
  const target = kind === "target" ? policy.targets.get(name) : undefined;
  const given = kind === "agent" ? agentOf(agents, name) : undefined;
  const title =
    target?.title === undefined
      ? given && inWords({ given }, ["en"]).title
      : inLanguage(target.title, ["en"]);
  return { key, kind, name, title, isPartner: target?.partner !== undefined };
}

/** The part of the map around a node: what leads to it and what it leads to, to the ends. */
export function around({ nodes, into, outOf }: WholeMap, key: NodeKey): MapData {
  const found = new Set<MapEdge>();
  for (const [links, end] of [
    [outOf, "to"],
    [into, "from"],
  ] as const) {
    const [seen, queue] = [new Set([key]), [key]];
    for (const at of queue) {
      for (const edge of links.get(at) ?? []) {
        found.add(edge);
        const next = edge[end];
        if (seen.has(next)) continue;
        seen.add(next);
        queue.push(next);
      }
    }
  }
  const edges = [...found];
  const keys = new Set([key, ...edges.flatMap(({ from, to }) => [from, to])]);
  const kept = [...keys].flatMap((one): [NodeKey, MapNode][] => {
    const node = nodes.get(one);
    return node === undefined ? [] : [[one, node]];
  });
  return { nodes: new Map(kept), edges };
}

// --- agents -------------------------------------------------------------------------------------------------------

function agentsOf(settings: Settings, counted: TrailCounts, reach: Allowed["reach"]): readonly AgentRow[] {
  const ids = new Set([...counted.agents.keys(), ...reach.keys(), ...settings.clients.keys()]);
  const rows = [...ids].map((id): AgentRow => {
    const given = agentOf(settings.agents, id);
    const { title, purpose, owner, contact } = given === undefined ? {} : inWords({ given }, ["en"]);
    const used = counted.agents.get(id);
    const method = settings.clients.get(id)?.auth.method;
    const methods = [...new Set([...(used?.methods ?? []), ...(method === undefined ? [] : [method])])];
    return { id, title, purpose, owner, contact, methods, used, reach: reachOf(reach, id) };
  });
  return rows.sort((a, b) => (b.used?.use.count ?? 0) - (a.used?.use.count ?? 0) || (a.id < b.id ? -1 : 1));
}

function reachOf(reach: Allowed["reach"], id: string): AgentRow["reach"] {
  const all = new Map<string, Set<string>>();
  for (const [label, targets] of reach) {
    if (!matchesPattern(label, id)) continue;
    for (const [target, scopes] of targets) all.set(target, new Set([...(all.get(target) ?? []), ...scopes]));
  }
  return all;
}

// --- refusals -----------------------------------------------------------------------------------------------------

function refusalOf(
  { policy, issuer }: Settings,
  trail: Gathered,
  { event, ...refused }: RefusedUse,
  isJudged: boolean,
): RefusalRow {
  const row = { ...refused, lastRequest: event.request?.id, allowedNow: false };
  const { facts } = event;
  if (facts === undefined || !isJudged) return row;
  const asked = askedOf({ ...event, facts }, issuer, trail, policy.claims);
  if (!asked.ok) return row;
  const decided = decideRequest(policy, asked.value);
  if (decided.ok) return { ...row, allowedNow: true };
  const ladder = ladderOf(decided.error.trace, asked.value);
  return { ...row, judged: { ladder, suggestion: smallestChange(policy, asked.value) } };
}

// --- as JSON ------------------------------------------------------------------------------------------------------

const usesJson = (uses: Uses) => byUse(uses).map(([name, use]) => ({ name, ...use }));

export const showModel = ({ counted, map, agents, refusals, ...rest }: Model): object => ({
  ...rest,
  events: counted.events,
  requests: counted.requests,
  people: usesJson(counted.people),
  targets: usesJson(counted.targets),
  edges: map.edges,
  agents: agents.map(({ used, reach, ...agent }) => ({
    ...agent,
    used: used && {
      ...used.use,
      refused: used.refused,
      people: used.people.by.size,
      rules: usesJson(used.rules),
    },
    reach: [...reach].map(([target, scopes]) => ({ target, scopes: [...scopes] })),
  })),
  refusals: refusals.map(({ subjects, ...one }) => ({ ...one, subjects: subjects.by.size })),
});
