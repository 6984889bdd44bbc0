/** The ratios by which the server is judged, from the rows of one run. */
import type { Row } from "./rounds.ts";
import type { Starts } from "./starts.ts";

export type Ratio = { name: string; target: string; value: number; met: boolean };

type Numbers = { cpu(name: string): number; rate(name: string): number };

const MOST: readonly [name: string, target: number, of: (rows: Numbers) => number][] = [
  ["secret: CPU to the skeleton", 1.5, ({ cpu }) => cpu("secret") / cpu("skeleton secret")],
  ["delegation: CPU to the skeleton", 1.5, ({ cpu }) => cpu("delegation") / cpu("skeleton delegation")],
  ["delegation: CPU of the same tokens again", 0.5, ({ cpu }) => cpu("delegation-warm") / cpu("delegation")],
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
    "secret: requests/s on PostgreSQL to SQLite",
    0.8,
    ({ rate }) => rate("PostgreSQL secret") / rate("secret"),
  ],
  [
    "delegation: requests/s on PostgreSQL to SQLite",
    0.8,
    ({ rate }) => rate("PostgreSQL delegation") / rate("delegation"),
  ],
];

/** Those whose rows were measured. */
export function toRatios(rows: readonly Row[], starts?: Starts): readonly Ratio[] {
  const named = new Map(rows.map((row) => [row.name, row]));
  const numbers: Numbers = {
    cpu: (name) => named.get(name)?.serverCpuMicros ?? Number.NaN,
    rate: (name) => named.get(name)?.requestsPerSecond ?? Number.NaN,
  };
  const most = MOST.map(([name, target, of]) => atMost(name, target, of(numbers)));
  const least = LEAST.map(([name, target, of]) => {
    const value = of(numbers);
    return { name, target: `≥ ${target}`, value, met: value >= target };
  });
  const started = Object.entries(starts ?? {}).flatMap(([how, { seconds, residentMegabytes }]) => [
    atMost(`start to the first token, ${how}, s`, 0.4, seconds),
    atMost(`resident after the first token, ${how}, MB`, 100, residentMegabytes),
  ]);
  return [...most, ...least, ...started].filter(({ value }) => Number.isFinite(value));
}

const atMost = (name: string, target: number, value: number): Ratio => ({
  name,
  target: `≤ ${target}`,
  value,
  met: value <= target,
});
