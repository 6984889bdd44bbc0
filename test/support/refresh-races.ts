/**
 * Refreshing beside withdrawing and ending, at several instances on one store: no token of a family that is dead may
 * live on.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { Agent } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, basic, encodeForm } from "../../scripts/http-client.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock } from "../../src/adapters/clock.ts";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import { buildEnding, grantKeys } from "../../src/policy/endings.ts";
import type { Entry, Family } from "../../src/records.ts";
import { buildRefreshToken } from "../../src/spec/rfc6749.ts";
import { files, forPeople, NOTES, PRIVATE, PRIVATE_SECRET, PUBLIC, SCOPES } from "./people.ts";
import { startProvider } from "./provider.ts";
import { makeWorld } from "./world.ts";

export const REFRESH_RACES = ["nothing", "withdrawn", "revoked", "ended", "reused"] as const;
export type RefreshRace = (typeof REFRESH_RACES)[number];

export type RaceOutcome = {
  /** Uses of one refresh token at the same moment. */
  uses: number;
  given: number;
  /** Different refresh tokens among the answers. */
  successors: number;
  /** Access tokens that are active afterwards, and refresh tokens that still give something. */
  living: number;
  faults: number;
};

export type RefreshRaces = {
  /** One family, used at all instances while it is ended in this way. */
  race(kind: RefreshRace): Promise<RaceOutcome>;
  stop(): Promise<void>;
};

const authorization = basic(PRIVATE, PRIVATE_SECRET);
const SPREAD_MS = 12;
const USES = 5;

export async function openRefreshRaces(postgres: string, count: number): Promise<RefreshRaces> {
  const provider = await startProvider();
  const base = forPeople(provider);
  const extra = {
    ...base,
    targets: base.targets.map((target) => ({ ...target, introspectors: [PRIVATE] })),
    policies: base.policies.map((rule) => ({ ...rule, refresh: true })),
    limits: {
      pagesPerMinuteBySource: 1_000_000,
      requestsPerSecondByClient: 1_000_000,
      failuresPerMinuteByClient: 1_000_000,
      failuresPerMinuteBySource: 1_000_000,
    },
  };
  const world = await makeWorld(extra, { postgres, files: files(provider) });
  const others: ServerProcess[] = [];
  while (others.length < count - 1) others.push(await world.beside(`beside-${others.length}`));
  const ports = [world.server, ...others].map(({ port }) => port);
  const store = await openStore({ postgres });
  const onFatal = (reason: string): void => assert.fail(reason);
  const journal = await openJournal({ log: "races", store: store.log, clock, random, onFatal });
  const record = async (entry: Entry): Promise<void> => assert.ok((await journal.record(entry)).ok);
  const by = { type: "consent.recorded", outcome: "allow", reason: "by_subject" } as const;

  /** A family as a click makes it. */
  const start = async (): Promise<{ family: Family; token: string }> => {
    const nowSeconds = clock.nowSeconds();
    const origin = { iss: provider.issuer, sub: "alice" };
    const [consentId, id] = [`page-${random.id()}`, random.id()];
    const add = { id: consentId, version: 1, origin, actor: PUBLIC, targets: [NOTES], scopes: SCOPES };
    await record({ event: by, consent: { add } });
    const grant = { id, clientId: PUBLIC, origin, consentId };
    const times = { signedInAtSeconds: nowSeconds, startedAtSeconds: nowSeconds };
    const family: Family = {
      ...grant,
      rotates: true,
      sub: "company:alice",
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
    await record({ event: by, family: { start: family, digest: hash.sha256(token) } });
    return { family, token };
  };

  const refresh = (token: string, port: number): Promise<Answer> =>
    world.token({ grant_type: "refresh_token", refresh_token: token, client_id: PUBLIC }, {}, {}, port);

  const isActive = async (token: unknown): Promise<boolean> => {
    const answer = await world.get("/introspect", {
      method: "POST",
      headers: { authorization, "content-type": "application/x-www-form-urlencoded" },
      body: encodeForm({ token: String(token) }),
    });
    return answer.body.active === true;
  };

  const fromElsewhere = (token: string): Promise<Answer> =>
    world.get("/token", {
      agent: new Agent({ localAddress: "127.0.0.2" }),
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: encodeForm({ grant_type: "refresh_token", refresh_token: token, client_id: PUBLIC }),
    });

  /** `old`: the token before the one that is used, which was used before; it comes from another source. */
  const end = async (kind: RefreshRace, family: Family, token: string, old: string): Promise<void> => {
    switch (kind) {
      case "nothing":
        return;
      case "withdrawn": {
        const event = { ...by, type: "consent.withdrawn" } as const;
        return record({ event, consent: { withdraw: family.consentId, atSeconds: clock.nowSeconds() } });
      }
      case "revoked": {
        const answer = await world.get("/revoke", {
          method: "POST",
          headers: { "content-type": "application/x-www-form-urlencoded" },
          body: encodeForm({ token, client_id: PUBLIC }),
        });
        return assert.equal(answer.status, 200);
      }
      case "ended": {
        const ending = buildEnding(hash.sha256, { by: "grant", id: family.id }, clock.nowMs());
        return record({ event: { ...by, type: "refresh.ended", reason: "by_operator" }, ending });
      }
      case "reused":
        return assert.equal((await fromElsewhere(old)).body.error, "invalid_grant");
    }
  };

  return {
    async race(kind) {
      const { family, token: first } = await start();
      // Two rotations, so that the first token is an old one.
      const second = String((await refresh(first, ports[0] ?? 0)).body.refresh_token);
      const token = String((await refresh(second, ports[0] ?? 0)).body.refresh_token);
      const late = async (port: number): Promise<Answer> => {
        await sleep(randomInt(SPREAD_MS));
        return refresh(token, port);
      };
      const uses = Array.from({ length: USES }, (_, index) => late(ports[index % ports.length] ?? 0));
      const ending = sleep(randomInt(SPREAD_MS)).then(() => end(kind, family, token, first));
      const answers = await Promise.all(uses);
      await ending;
      const given = answers.filter(({ status }) => status === 200);
      const faults = answers.filter(({ status, body }) => status !== 200 && body.error !== "invalid_grant");
      const successors = [...new Set(given.map(({ body }) => String(body.refresh_token)))];
      const access = await Promise.all(given.map(({ body }) => isActive(body.access_token)));
      const again = await Promise.all(
        successors.map(async (one, index) => (await refresh(one, ports[index] ?? 0)).status === 200),
      );
      return {
        uses: USES,
        given: given.length,
        successors: successors.length,
        living: [...access, ...again].filter(Boolean).length,
        faults: faults.length,
      };
    },
    async stop() {
      await journal.close();
      await store.close();
      for (const other of others) await other.stop();
      await world.stop();
      await provider.close();
    },
  };
}

/** What a race has to come to; undefined where it did. */
export function wrongIn(
  kind: RefreshRace,
  { uses, given, successors, living, faults }: RaceOutcome,
): string | undefined {
  if (faults > 0) return `${faults} answers are neither tokens nor invalid_grant`;
  if (successors > 1) return `${successors} successors of one token`;
  if (kind === "nothing")
    return given === uses ? undefined : `${uses - given} of ${uses} processes got nothing`;
  return living === 0 ? undefined : `${living} tokens of a dead family live on`;
}
