/**
 * What a question to `/introspect` costs: as long for a token that ended as for one that stands, whether or not it is for
 * a target of the caller, so that time does not tell what the answer keeps back.
 */
import assert from "node:assert/strict";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";
import { PATIENT } from "../../test/support/registration.ts";
import { makeService } from "../../test/support/service.ts";
import type { Service } from "../../test/support/world.ts";
import { basic } from "../http-client.ts";
import { type Costs, describeCosts, measureCosts, spreadOf } from "./costs.ts";

const SECRET = "f7c3bc1d808e04732adf679965ccc34c";
const OWN = "https://own.example";
const OTHER = "https://other.example";
const scopes = ["read"];
const WARM_UP = 100;

const KINDS = [
  "own, stands",
  "own, ended",
  "other's, stands",
  "other's, ended",
  "forged",
  "no token",
] as const;
type Kind = (typeof KINDS)[number];

const CONFIGURATION = {
  clients: {
    desk: { method: "client_secret_basic", secrets: [SECRET] },
    gate: { method: "client_secret_basic", secrets: [SECRET] },
  },
  targets: [
    { names: [OWN], introspectors: ["gate"], scopes },
    { names: [OTHER], scopes },
  ],
  policies: [
    {
      id: "desk",
      allow: "client_credentials",
      clients: ["desk"],
      targets: [OWN, OTHER],
      scopes,
      lifetimeSeconds: 3600,
    },
  ],
  limits: { ...PATIENT, requestsPerSecondByClient: 100_000 },
};

/** In this process, over this store. */
export async function measureIntrospection(
  rounds: number,
  warmUp: number,
  postgres?: string,
): Promise<Costs<Kind>> {
  const service = await makeService(
    CONFIGURATION,
    postgres === undefined ? { inFile: true } : { inFile: true, postgres },
  );
  try {
    const tokens = await tokensOf(service);
    return await measureCosts(KINDS, { rounds, warmUp }, async (kind) => {
      const { status, body } = await post(service, "/introspect", "gate", tokens[kind]);
      assert.deepEqual([status, body.active], [200, kind === "own, stands"], kind);
    });
  } finally {
    await service.stop();
  }
}

async function tokensOf(service: Service): Promise<Record<Kind, string>> {
  const obtain = async (audience: string): Promise<string> => {
    const form = { grant_type: "client_credentials", audience };
    const { status, body } = await service.token(form, { authorization: basic("desk", SECRET) });
    assert.equal(status, 200);
    return String(body.access_token);
  };
  const obtainEnded = async (audience: string): Promise<string> => {
    const token = await obtain(audience);
    assert.equal((await post(service, "/revoke", "desk", token)).status, 200);
    return token;
  };
  const token = await obtain(OWN);
  return {
    "own, stands": token,
    "own, ended": await obtainEnded(OWN),
    "other's, stands": await obtain(OTHER),
    "other's, ended": await obtainEnded(OTHER),
    forged: `${token.slice(0, -8)}AAAAAAAA`,
    "no token": "x".repeat(token.length),
  };
}

const post = (service: Service, path: string, client: string, token: string) =>
  service.get(path, {
    method: "POST",
    headers: {
      authorization: basic(client, SECRET),
      "content-type": "application/x-www-form-urlencoded",
    },
    body: `token=${token}`,
  });

const tell = (store: string, costs: Costs<Kind>): string => {
  const own = spreadOf(costs, "own, stands", "own, ended");
  const others = spreadOf(costs, "other's, stands", "other's, ended");
  return `${store}: ${describeCosts(costs)}; ended or not: ${own} apart for own targets, ${others} for others`;
};

/** A line for each store. */
export async function runEqualIntrospection(rounds: number): Promise<readonly string[]> {
  const database = await startPostgres();
  try {
    return [
      tell("SQLite", await measureIntrospection(rounds, WARM_UP)),
      tell("PostgreSQL", await measureIntrospection(rounds, WARM_UP, await freshDatabase(database))),
    ];
  } finally {
    await database.stop();
  }
}
