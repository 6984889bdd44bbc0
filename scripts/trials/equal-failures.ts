/**
 * What a wrong secret costs: as long for a client that does not exist as for one of the configuration, of the operator
 * or of a registration, so that the time of a refusal does not tell which names are clients.
 */
import assert from "node:assert/strict";
import { runClient } from "../../test/support/host.ts";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";
import { PATIENT } from "../../test/support/registration.ts";
import { makeService } from "../../test/support/service.ts";
import type { Service } from "../../test/support/world.ts";
import { basic } from "../http-client.ts";
import { type Costs, describeCosts, measureCosts, spreadOf } from "./costs.ts";

const KINDS = ["unknown", "configured", "operator", "registered"] as const;
type Kind = (typeof KINDS)[number];

const SECRET = "f7c3bc1d808e04732adf679965ccc34c";
const WARM_UP = 100;

/** In this process, over this store. */
async function measure(rounds: number, postgres?: string): Promise<Costs<Kind>> {
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
    return await measureCosts(KINDS, { rounds, warmUp: WARM_UP }, async (kind) => {
      const { status } = await service.token(FORM, headers[kind]);
      assert.equal(status, 401);
    });
  } finally {
    await service.stop();
  }
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

const tell = (store: string, costs: Costs<Kind>): string =>
  `${store}: ${describeCosts(costs)}, ${spreadOf(costs, ...KINDS)} apart`;

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
