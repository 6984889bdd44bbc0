/**
 * What a wrong secret costs: as long for a client that does not exist as for one of the configuration, of the operator
 * or of a registration, so that the time of a refusal does not tell which names are clients.
 */
import assert from "node:assert/strict";
import { runClient } from "../../test/support/host.ts";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";
import type { Prng } from "../../test/support/prng.ts";
import { prng } from "../../test/support/prng.ts";
import { PATIENT } from "../../test/support/registration.ts";
import { makeService } from "../../test/support/service.ts";
import type { Service } from "../../test/support/world.ts";
import { basic } from "../http-client.ts";

const KINDS = ["unknown", "configured", "operator", "registered"] as const;
type Kind = (typeof KINDS)[number];
/** Median of the milliseconds of a refusal, and of its share in the time of a round, in parts of an even share. */
type Cost = { ms: number; share: number };
type Costs = Readonly<Record<Kind, Cost>>;

const SECRET = "0123456789abcdef0123456789abcdef";
const SEED = 3;
const WARM_UP = 100;

/**
 * Each kind once in a round, in this process over this store. Shares are compared, because what else the machine does
 * changes all times of a round alike.
 */
async function measure(rounds: number, postgres?: string): Promise<Costs> {
  const service = await makeService(
    {
      clients: { configured: { method: "client_secret_basic", secrets: [SECRET] } },
      registration: { mode: "open", open: { scopes: ["read"] } },
      limits: PATIENT,
    },
    postgres === undefined ? { inFile: true } : { inFile: true, postgres },
  );
  try {
    const names: Readonly<Record<Kind, string>> = {
      // Of the length of the others that are made.
      unknown: `c_${"x".repeat(22)}`,
      configured: "configured",
      operator: await create(service),
      registered: await register(service),
    };
    const headers = Object.fromEntries(
      KINDS.map((kind) => [kind, { authorization: basic(names[kind], "a guess") }]),
    );
    const random = prng(SEED);
    const all: Record<Kind, number>[] = [];
    for (let round = -WARM_UP; round < rounds; round++) {
      const times = { unknown: 0, configured: 0, operator: 0, registered: 0 };
      for (const kind of shuffled(random)) {
        const startMs = performance.now();
        const { status } = await service.token(FORM, headers[kind]);
        times[kind] = performance.now() - startMs;
        assert.equal(status, 401);
      }
      if (round >= 0) all.push(times);
    }
    const costs = KINDS.map((kind): [Kind, Cost] => {
      const shares = all.map((times) => (times[kind] * KINDS.length) / totalOf(times));
      return [kind, { ms: medianOf(all.map((times) => times[kind])), share: medianOf(shares) }];
    });
    return Object.fromEntries(costs) as Costs;
  } finally {
    await service.stop();
  }
}

/** In an order by chance, since what was done last is still in the caches. */
function shuffled(random: Prng): Kind[] {
  const left = [...KINDS];
  return KINDS.map(() => left.splice(random.below(left.length), 1)[0] ?? "unknown");
}

const FORM = { grant_type: "client_credentials" };

async function create(service: Service): Promise<string> {
  const printed = await runClient(service, "create", "--method", "client_secret_basic", "--json");
  return JSON.parse(printed).client_id;
}

async function register({ get }: Service): Promise<string> {
  const metadata = { token_endpoint_auth_method: "client_secret_basic", grant_types: ["client_credentials"] };
  const { body } = await get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...metadata, scope: "read" }),
  });
  assert.equal(typeof body.client_id, "string");
  return String(body.client_id);
}

const medianOf = (all: readonly number[]): number =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;

const totalOf = (times: Readonly<Record<Kind, number>>): number =>
  Object.values(times).reduce((sum, ms) => sum + ms, 0);

/** How far the slowest kind is from the fastest, in parts of the fastest. */
function spreadOf(costs: Costs): number {
  const shares = Object.values(costs).map(({ share }) => share);
  return Math.max(...shares) / Math.min(...shares) - 1;
}

const tell = (store: string, costs: Costs): string => {
  const each = Object.entries(costs).map(
    ([kind, { ms, share }]) => `${kind} ${(ms * 1000).toFixed(1)} µs (${share.toFixed(3)})`,
  );
  return `${store}: ${each.join(", ")}, ${(spreadOf(costs) * 100).toFixed(1)} % apart`;
};

/** A line for each store. */
export async function runEqualFailures(rounds: number): Promise<readonly string[]> {
  const database = await startPostgres();
  try {
    return [
      tell("SQLite", await measure(rounds)),
      tell("PostgreSQL", await measure(rounds, await freshDatabase(database))),
    ];
  } finally {
    await database.stop();
  }
}
