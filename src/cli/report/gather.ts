/** What a report counts of the events, one after the other: who acted for whom at what, and what was refused. */
import type { Recorded } from "../../audit/recorded.ts";
import { addUse, callerIn, noUses, subjectName, targetIn, type Use, type Uses } from "../../audit/uses.ts";

export type Kind = "person" | "agent" | "target";
/** A node of the map: its kind and its name. */
export type NodeKey = `${Kind} ${string}`;

export const edgeKey = (from: NodeKey, to: NodeKey): string => JSON.stringify([from, to]);

export type AgentUse = {
  use: Use;
  /** Of the requests of the use, those that were refused. */
  refused: number;
  methods: Set<string>;
  people: Uses;
  rules: Uses;
};

export type RefusedUse = {
  use: Use;
  subjects: Uses;
  agent: string;
  reason: string;
  mode: string;
  target: string | undefined;
  scope: string | undefined;
  /** The newest of them. */
  event: Recorded;
};

export type TrailCounts = {
  events: number;
  requests: number;
  agents: Map<string, AgentUse>;
  people: Uses;
  targets: Uses;
  rules: Uses;
  edges: Uses;
  refusals: Map<string, RefusedUse>;
  unlisted: number;
};

const AGENTS_MAX = 20_000;
const REFUSALS_MAX = 5000;

export const nothingCounted = (): TrailCounts => ({
  events: 0,
  requests: 0,
  agents: new Map(),
  people: noUses(),
  targets: noUses(),
  rules: noUses(),
  edges: noUses(),
  refusals: new Map(),
  unlisted: 0,
});

export function countEvent(counted: TrailCounts, event: Recorded): void {
  counted.events++;
  const agent = callerIn(event);
  // What is no request for a token has no mode.
  if (event.mode === undefined || agent === undefined) return;
  counted.requests++;
  const timeMs = Date.parse(event.time);
  const known = counted.agents.get(agent) ?? newAgent(counted, agent, timeMs);
  if (known === undefined) return;
  known.use.count++;
  known.use.lastMs = Math.max(known.use.lastMs, timeMs);
  if (event.client !== undefined && known.methods.size < 8) known.methods.add(event.client.auth_method);
  if (event.granted === undefined) {
    known.refused++;
    countRefused(counted, event, agent, timeMs);
  } else countGranted(counted, known, event, agent, timeMs);
}

function newAgent({ agents }: TrailCounts, id: string, timeMs: number): AgentUse | undefined {
  if (agents.size >= AGENTS_MAX) return undefined;
  const use = { count: 0, firstMs: timeMs, lastMs: timeMs };
  const agent = { use, refused: 0, methods: new Set<string>(), people: noUses(), rules: noUses() };
  agents.set(id, agent);
  return agent;
}

/** An edge to the caller, from the subject or the actor before it, and one to the target. */
function countGranted(
  { people, targets, rules, edges }: TrailCounts,
  known: AgentUse,
  event: Recorded,
  agent: string,
  timeMs: number,
): void {
  const { subject, chain = [], policy } = event;
  const target = targetIn(event);
  const person = subject === undefined ? undefined : subjectName(subject);
  if (person !== undefined && subject?.sub !== agent) {
    addUse(people, person, timeMs);
    addUse(known.people, person, timeMs);
    const before = chain[0]?.sub;
    const from: NodeKey = before === undefined ? `person ${person}` : `agent ${before}`;
    if (before !== agent) addUse(edges, edgeKey(from, `agent ${agent}`), timeMs);
  }
  if (policy?.rule_id !== undefined) {
    addUse(rules, policy.rule_id, timeMs);
    addUse(known.rules, policy.rule_id, timeMs);
  }
  if (target === undefined) return;
  addUse(targets, target, timeMs);
  addUse(edges, edgeKey(`agent ${agent}`, `target ${target}`), timeMs);
}

function countRefused(counted: TrailCounts, event: Recorded, agent: string, timeMs: number): void {
  const { reason, requested, subject } = event;
  const [target, scope, mode] = [targetIn(event), requested?.scope, event.mode ?? ""];
  const key = JSON.stringify([agent, reason, mode, target, scope]);
  let known = counted.refusals.get(key);
  if (known === undefined) {
    if (counted.refusals.size >= REFUSALS_MAX) {
      counted.unlisted++;
      return;
    }
    const use = { count: 0, firstMs: timeMs, lastMs: timeMs };
    known = { use, subjects: noUses(), agent, reason, mode, target, scope, event };
    counted.refusals.set(key, known);
  }
  known.use.count++;
  if (subject !== undefined) addUse(known.subjects, subjectName(subject), timeMs);
  if (timeMs < known.use.lastMs) return;
  known.use.lastMs = timeMs;
  known.event = event;
}
