/**
 * Agents that were never seen before: each gets a token of its own by its platform's grant. No table has a row for them
 * but those of tokens and of the trail, and the process grows no more than by the same requests of one agent.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { byGrant, makePlatform } from "../../test/support/platforms.ts";
import { makeWorld } from "../../test/support/world.ts";

const API = "https://api.example";
const AT_ONCE = 8;

const acme = makePlatform("https://acme.agents.example");
const CONFIGURATION = {
  trustedIssuers: {
    [acme.issuer]: {
      keys: { file: "acme.json" },
      workloads: { acme: { tenancy: "dedicated", subjects: ["agent/*"] } },
    },
  },
  targets: [{ names: [API], scopes: ["read"] }],
  policies: [
    {
      id: "agents",
      allow: "client_credentials",
      actors: ["platform://acme/*"],
      targets: [API],
      scopes: ["read"],
    },
  ],
  limits: { requestsPerSecondByClient: 100_000 },
  drafts: [SPIFFE_DRAFT, DRAFT],
};

export type Served = {
  /** The tables that have more rows than before, with how many. */
  grown: Readonly<Record<string, number>>;
  /** Resident memory after the first tenth, after the half and at the end. */
  residentMiB: readonly number[];
};

/** So many requests, each from an agent of its own, or all from so many `agents`. */
export async function serveAgents(count: number, agents = count): Promise<Served> {
  const world = await makeWorld(CONFIGURATION, { files: { "acme.json": acme.jwks } });
  try {
    let next = 0;
    const until = async (end: number): Promise<void> => {
      while (next < end) {
        const sub = `agent/${next++ % agents}`;
        const answer = await world.token(byGrant(acme.token({ sub }), { resource: API }));
        if (answer.status !== 200) throw new Error(answer.text);
      }
    };
    const serve = (end: number) => Promise.all(Array.from({ length: AT_ONCE }, () => until(end)));
    const file = join(world.folder, "mandate.sqlite");
    const residentMiB: number[] = [];
    const note = (): void => {
      const status = readFileSync(`/proc/${world.server.child.pid}/status`, "utf8");
      residentMiB.push(Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024));
    };
    const before = rowsOf(file);
    for (const part of [0.1, 0.5, 1]) {
      await serve(count * part);
      note();
    }
    const grown = Object.entries(rowsOf(file))
      .map(([table, rows]) => [table, rows - (before[table] ?? 0)] as const)
      .filter(([, more]) => more > 0);
    return { grown: Object.fromEntries(grown), residentMiB };
  } finally {
    await world.stop();
  }
}

function rowsOf(file: string): Record<string, number> {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const tables = database.prepare("select name from sqlite_master where type = 'table'").all();
    return Object.fromEntries(
      tables.map(({ name }) => {
        const row = database.prepare(`select count(*) as rows from "${name}"`).get();
        return [String(name), Number(row?.rows)];
      }),
    );
  } finally {
    database.close();
  }
}

export async function runPlatformAgents(rounds: number): Promise<readonly string[]> {
  const { grown, residentMiB } = await serveAgents(rounds);
  const { residentMiB: ofOne } = await serveAgents(rounds, 1);
  const tables = Object.entries(grown).map(([table, rows]) => `${table} ${rows}`);
  return [
    `${rounds} agents, each seen for the first time: more rows in ${tables.join(", ")}`,
    `resident memory after a tenth, half and all of them: ${residentMiB.join(", ")} MiB`,
    `the same with as many requests of one agent: ${ofOne.join(", ")} MiB`,
  ];
}
