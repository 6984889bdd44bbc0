/** Users whose clients refresh while PostgreSQL is killed and starts again: a server of this file alone. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { clock } from "../src/adapters/clock.ts";
import { hash } from "../src/adapters/crypto/hash.ts";
import { random } from "../src/adapters/crypto/random.ts";
import { grantKeys } from "../src/policy/endings.ts";
import type { Outage, Ports } from "../src/ports.ts";
import { buildRefreshToken } from "../src/spec/rfc6749.ts";
import { files, forPeople, NOTES, PUBLIC, SCOPES } from "./support/people.ts";
import { freshDatabase, type Postgres, startPostgres } from "./support/postgres.ts";
import { startProvider, type TestProvider } from "./support/provider.ts";
import { makeService } from "./support/service.ts";
import { stop } from "./support/stop.ts";
import { until } from "./support/until.ts";

const USERS = 24;
const OUTAGES = 2;
const AWAY_MS = 500;
const SERVED_MS = 300;

/** The requests that waited for a server that writes. */
let held = 0;
const counted = ({ outage }: Pick<Ports, "outage">) => ({
  outage: {
    wait(...of: Parameters<Outage["wait"]>) {
      held++;
      return outage.wait(...of);
    },
  },
});

let server: Postgres;
let provider: TestProvider;
let service: Awaited<ReturnType<typeof makeService>>;
before(async () => {
  server = await startPostgres({ durable: true });
  provider = await startProvider();
  const base = forPeople(provider);
  service = await makeService(
    {
      ...base,
      policies: base.policies.map((rule) => ({ ...rule, refresh: true })),
      limits: { requestsPerSecondByClient: 1_000_000 },
    },
    { inFile: true, postgres: await freshDatabase(server), files: files(provider), ports: counted },
  );
});
after(() => stop(service, provider, server));

/** What a user's click leaves: a consent, and a family with its first refresh token. */
async function give(user: string): Promise<string> {
  const { journal } = service.ports;
  const by = { type: "consent.recorded", outcome: "allow", reason: "by_subject" } as const;
  const nowSeconds = clock.nowSeconds();
  const origin = { iss: provider.issuer, sub: user };
  const [consentId, id] = [`page-${random.id()}`, random.id()];
  const add = { id: consentId, version: 1, origin, actor: PUBLIC, targets: [NOTES], scopes: SCOPES };
  const grant = { id, clientId: PUBLIC, origin, consentId };
  const times = { signedInAtSeconds: nowSeconds, startedAtSeconds: nowSeconds };
  const start = {
    ...grant,
    rotates: true,
    sub: `company:${user}`,
    target: NOTES,
    scopes: SCOPES,
    offline: false,
    startedAtSeconds: nowSeconds,
    endsAtSeconds: nowSeconds + 12 * 3600,
    usedAtSeconds: nowSeconds,
    generation: 1,
    endingKeys: grantKeys(hash.sha256, { ...grant, ...times }),
  };
  const token = buildRefreshToken(random.secret());
  assert.ok((await journal.record({ event: by, consent: { add } })).ok);
  assert.ok((await journal.record({ event: by, family: { start, digest: hash.sha256(token) } })).ok);
  return token;
}

test("STORE-D-21 none of 24 users is asked to sign in again where PostgreSQL is killed and back before the deadline, and each token has one event", async (t) => {
  const tokens = await Promise.all(Array.from({ length: USERS }, (_, nth) => give(`user-${nth}`)));
  let isOver = false;
  let answered = 0;
  const refused: string[] = [];
  const refresh = async (token: string): Promise<string | undefined> => {
    const form = { grant_type: "refresh_token", refresh_token: token, client_id: PUBLIC };
    const answer = await service.token(form);
    if (answer.status === 200) return String(answer.body.refresh_token);
    refused.push(answer.text);
    return undefined;
  };
  // No fault leaves it, or the test would go on without its users, and end with those that a closed service fails.
  const use = async (first: string): Promise<void> => {
    for (let token: string | undefined = first; token !== undefined && !isOver; ) {
      token = await refresh(token).catch((fault) => void refused.push(String(fault)));
      if (token !== undefined) answered++;
    }
  };
  // These come while PostgreSQL is away, so that each is held however fast the others are.
  const late = tokens.splice(0, OUTAGES);
  const users = tokens.map(use);
  t.after(() => {
    isOver = true;
  });
  for (const token of late) {
    await sleep(SERVED_MS);
    await server.kill();
    const heldBefore = held;
    users.push(use(token));
    await until(() => held > heldBefore || refused.length > 0, "a request is held");
    await sleep(AWAY_MS);
    await server.restart();
    const before = answered;
    await until(() => answered >= before + USERS || refused.length > 0, "the users are answered");
  }
  isOver = true;
  await Promise.all(users);
  assert.deepEqual(refused, []);
  const events = await service.events();
  const issued = events.filter(({ granted }) => granted !== undefined);
  assert.equal(new Set(issued.map(({ granted }) => granted?.jti)).size, answered);
});
