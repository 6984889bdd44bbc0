/** The ratios by which the server is judged, from the rows of one run. */
import type { Row } from "./rounds.ts";
import type { Starts } from "./starts.ts";

export type Ratio = { name: string; target: string; value: number; met: boolean };

type Numbers = Record<"cpu" | "kilobytes" | "events", (name: string) => number>;

const MOST: readonly [name: string, target: number, of: (rows: Numbers) => number][] = [
  ["secret: CPU to the skeleton", 2, ({ cpu }) => cpu("secret") / cpu("skeleton secret")],
  ["delegation: CPU to the skeleton", 1.9, ({ cpu }) => cpu("delegation") / cpu("skeleton delegation")],
  [
    "secret: CPU to the skeleton, beside a busy process",
    2.3,
    ({ cpu }) => cpu("secret, beside a busy process") / cpu("skeleton secret, beside a busy process"),
  ],
  ["secret: allocated, KB", 60, ({ kilobytes }) => kilobytes("secret")],
  ["delegation: allocated, KB", 110, ({ kilobytes }) => kilobytes("delegation")],
  ["delegation: CPU of the same tokens again", 0.6, ({ cpu }) => cpu("delegation-warm") / cpu("delegation")],
  ["introspection: CPU to a secret", 0.6, ({ cpu }) => cpu("introspection") / cpu("secret")],
  [
    "introspection: CPU to a secret, on PostgreSQL",
    0.75,
    ({ cpu }) => cpu("PostgreSQL introspection") / cpu("PostgreSQL secret"),
  ],
  ["keys: CPU to a secret", 0.15, ({ cpu }) => cpu("jwks") / cpu("secret")],
  ["metadata: CPU to a secret", 0.2, ({ cpu }) => cpu("metadata") / cpu("secret")],
  ["callback of a sign-in: CPU to a secret", 2, ({ cpu }) => cpu("callback") / cpu("secret")],
  ["secret: CPU on PostgreSQL to SQLite", 1.1, ({ cpu }) => cpu("PostgreSQL secret") / cpu("secret")],
  [
    "delegation: CPU on PostgreSQL to SQLite",
    1.15,
    ({ cpu }) => cpu("PostgreSQL delegation") / cpu("delegation"),
  ],
  ["secret: CPU on 1 connection to many", 1.4, ({ cpu }) => cpu("secret, 1 connection") / cpu("secret")],
  [
    "secret: CPU on a new connection to the same kept open and a bare handshake",
    1.25,
    ({ cpu }) => cpu("secret, new connections") / (cpu("secret") + cpu("skeleton handshake")),
  ],
];

const LEAST: typeof MOST = [
  [
    "secret: requests in a CPU second to oidc-provider",
    1.5,
    ({ cpu }) => cpu("oidc-provider secret") / cpu("secret"),
  ],
  [
    "secret: requests in a CPU second to oidc-provider, beside a busy process",
    1.2,
    ({ cpu }) => cpu("oidc-provider secret, beside a busy process") / cpu("secret, beside a busy process"),
  ],
  ["secret: events in a commit on PostgreSQL", 12, ({ events }) => events("PostgreSQL secret")],
  ["delegation: events in a commit on PostgreSQL", 12, ({ events }) => events("PostgreSQL delegation")],
];

/** Those whose rows were measured. */
export function toRatios(rows: readonly Row[], starts?: Starts): readonly Ratio[] {
  const named = new Map(rows.map((row) => [row.name, row]));
  const numbers: Numbers = {
    cpu: (name) => named.get(name)?.serverCpuMicros ?? Number.NaN,
    kilobytes: (name) => named.get(name)?.allocatedKilobytes ?? Number.NaN,
    events: (name) => named.get(name)?.eventsPerCommit ?? Number.NaN,
  };
  const most = MOST.map(([name, target, of]) => atMost(name, target, of(numbers)));
  const least = LEAST.map(([name, target, of]) => {
    const value = of(numbers);
    return { name, target: `≥ ${target}`, value, met: value >= target };
  });
  const started = Object.entries(starts ?? {}).flatMap(([how, { seconds, residentMegabytes }]) => [
    atMost(`start to the first token, ${how}, s`, how === "fresh" ? 0.5 : 0.3, seconds),
    atMost(`resident after the first token, ${how}, MB`, 100, residentMegabytes),
  ]);
  const resident = rows.find(({ name }) => name === "delegation")?.residentMegabytes ?? Number.NaN;
  return [atMost("delegation: resident under load, MB", 190, resident), ...most, ...least, ...started].filter(
    ({ value }) => Number.isFinite(value),
  );
}

const atMost = (name: string, target: number, value: number): Ratio => ({
  name,
  target: `≤ ${target}`,
  value,
  met: value <= target,
});
