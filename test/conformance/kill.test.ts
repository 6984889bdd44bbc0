/** SIGKILL under load: every issued token has its event, and the hash chain continues after the restart. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { verifyAudit } from "../../scripts/audit-verify.ts";
import { startServer } from "../../scripts/server-process.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Postgres } from "../support/postgres.ts";
import { freshDatabase, startPostgres } from "../support/postgres.ts";
import { exportOf } from "../support/trail.ts";
import type { World } from "../support/world.ts";
import { claimsOf, EXCHANGE, IDP, ISSUER, JWT, makeWorld, workload } from "../support/world.ts";

const ROUNDS = 4;
const ROUND_MS = 350;
const CLIENTS = 6;
const scopes = ["trips.read"];
const CONFIGURATION = {
  audit: { instance: "test", witness: { file: "witness" }, checkpoint: { events: 15, seconds: 1 } },
  targets: [{ names: ["booking-agent"], scopes }],
  policies: [
    {
      id: "planner",
      allow: "delegation",
      actors: [workload("agents/planner")],
      subjects: { issuers: [IDP] },
      subjectToken: { audiences: [ISSUER] },
      consent: "record",
      targets: ["booking-agent"],
      scopes,
    },
  ],
};

let postgres: Postgres;
before(async () => {
  postgres = await startPostgres({ durable: true });
});
after(() => postgres.stop());

/** Exchanges repeatedly until the server is killed; returns the `jti` of every token in a response. */
async function drive(world: World, port: number, form: Record<string, string>): Promise<string[]> {
  const answered: string[] = [];
  for (;;) {
    const answer = await world.token(form, {}, {}, port).catch(() => undefined);
    if (answer === undefined) return answered;
    assert.equal(answer.status, 200, answer.text);
    answered.push(String(claimsOf(answer.body.access_token).jti));
  }
}

const stores = {
  SQLite: async () => undefined,
  PostgreSQL: () => freshDatabase(postgres),
};
for (const [name, place] of Object.entries(stores)) {
  test(`AUDIT-D-1 every exchange that was answered has its event, however often the server is killed (${name})`, async (t) => {
    const url = await place();
    const world = await makeWorld(CONFIGURATION, url === undefined ? {} : { postgres: url });
    t.after(() => world.stop());
    await world.consent("alice", "agents/planner", "booking-agent", scopes);
    const [svid, userToken] = await Promise.all([
      world.svid("agents/planner"),
      world.idp.mintUserToken({ sub: "alice", aud: ISSUER, scope: "trips.read", expSeconds: 900 }),
    ]);
    const form = {
      grant_type: EXCHANGE,
      subject_token: userToken,
      subject_token_type: JWT,
      audience: "booking-agent",
      actor_token: svid,
      actor_token_type: JWT,
      ...world.as(svid),
    };

    const answered: string[] = [];
    let { server } = world;
    for (let round = 0; round < ROUNDS; round++) {
      const driven = Array.from({ length: CLIENTS }, () => drive(world, server.port, form));
      await sleep(ROUND_MS);
      await server.stop("SIGKILL");
      const inRound = (await Promise.all(driven)).flat();
      assert.ok(inRound.length > 0, `round ${round} had no responses`);
      answered.push(...inRound);
      server = await startServer(world.configFile);
    }
    assert.equal(await server.stop(), 0);

    const events = await world.events();
    const recorded = new Set(events.flatMap(({ granted }) => granted?.jti ?? []));
    assert.deepEqual(
      answered.filter((jti) => !recorded.has(jti)),
      [],
    );
    assert.ok(events.filter(({ type }) => type === "log.checkpoint").length >= ROUNDS);

    const store = await openStore(
      url === undefined ? { sqlite: join(world.folder, "mandate.sqlite") } : { postgres: url },
    );
    t.after(() => store.close());
    for (const jti of answered)
      assert.ok((await store.facts.token(jti))?.live, "a token has no row in the store");
    const save = (file: string, lines: readonly string[]): string => {
      writeFileSync(join(world.folder, file), lines.map((line) => `${line}\n`).join(""));
      return join(world.folder, file);
    };
    const rows = await store.audit.checkpoints(new Map(), 100_000);
    const checkpoints = save(
      "checkpoints",
      rows.map(({ jws }) => jws),
    );
    const witness = join(world.folder, "witness");
    const verdict = await verifyAudit({
      export: save("export", await exportOf(store)),
      checkpoints,
      witness,
    });
    assert.equal(verdict.code, 0, verdict.lines.join("\n"));
    // The last checkpoint of a server that was stopped by SIGTERM has reached the witness.
    assert.equal(
      JSON.parse(readFileSync(witness, "utf8").split("\n").at(-2) ?? "").checkpoint,
      rows.at(-1)?.jws,
    );
  });
}
