/** Endings beside exchanges, at several instances on one store: what is written at that moment must be dead. */
import assert from "node:assert/strict";
import { randomInt, randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mintJwtSvid } from "../../scripts/dev-keys.ts";
import type { Answer } from "../../scripts/http-client.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock } from "../../src/adapters/clock.ts";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import { ENDING_REACH_MS } from "../../src/limits/tokens.ts";
import { buildEnding, type EndingSelector } from "../../src/policy/endings.ts";
import { reload } from "./reload.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  consentAdded,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  workload,
} from "./world.ts";

/** Another name for the identity provider, whose subjects can be ended without those of the first. */
const OTHER_IDP = "https://other-idp.example";
const OTHER_DOMAIN = "race.example";
const SPREAD_MS = 250;
const booking = workload("booking");
const scopes = ["read"];
const forUsers = {
  allow: "delegation",
  subjects: { issuers: [IDP, OTHER_IDP] },
  subjectToken: { audiences: [ISSUER, "self"] },
  targets: ["desk"],
  scopes,
};
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };

export const RACE_KINDS = [
  "token",
  "subject",
  "actor",
  "client",
  "consent",
  "rule",
  "issuer",
  "trust_domain",
  "everything",
] as const;
export type RaceKind = (typeof RACE_KINDS)[number];
/** Every token of these has the same name, which is ended once for all of a volley. */
const SHARED: readonly RaceKind[] = ["rule", "issuer", "trust_domain", "everything"];

/** `races` exchanges beside an ending, `written` of which were answered with a token; `living` are not ended. */
export type RaceResult = { races: number; written: number; living: number };

export type EndingRaces = {
  /** Exchanges of so many tokens at every instance, beside their endings. */
  volley(kind: RaceKind, width: number): Promise<RaceResult>;
  /** Until endings no longer reach what is issued. */
  settle(): Promise<void>;
  stop(): Promise<void>;
};

/** On PostgreSQL any number of instances; the embedded store has one, beside the command that ends. */
export async function openEndingRaces(postgres: string | undefined, count: number): Promise<EndingRaces> {
  const world = await makeWorld({}, postgres === undefined ? {} : { postgres });
  await reload(world, ({ trustedIssuers }) => configuration(trustedIssuers as Record<string, object>));
  const others: ServerProcess[] = [];
  while (others.length < count - 1) others.push(await world.beside(`beside-${others.length}`));
  const ports = [world.server, ...others].map(({ port }) => port);
  const file = join(world.folder, "mandate.sqlite");
  const store = await openStore(postgres === undefined ? { sqlite: file } : { postgres });
  const onFatal = (reason: string): void => assert.fail(reason);
  const journal = await openJournal({ log: "operator", store: store.log, clock, random, onFatal });

  const svids = new Map<string, string>();
  const svidOf = async (id: string): Promise<string> => {
    const svid = svids.get(id) ?? (await mintJwtSvid(world.trustDomain, { sub: id, aud: ISSUER }));
    svids.set(id, svid);
    return svid;
  };
  const exchange = async (port: number, actor: string, subject: string, type: string): Promise<Answer> => {
    const svid = await svidOf(actor);
    const delegated = { actor_token: svid, actor_token_type: JWT, audience: "desk" };
    const form = { grant_type: EXCHANGE, subject_token: subject, subject_token_type: type };
    for (;;) {
      const sent = world.token({ ...form, ...delegated, ...world.as(svid) }, {}, {}, port);
      // An instance with too much to do says so, and one ends a connection that served long; it is asked again.
      const answer = await sent.catch(() => undefined);
      if (answer !== undefined && answer.status !== 429 && answer.status !== 503) return answer;
      await sleep(SPREAD_MS);
    }
  };
  const anywhere = (): number => ports[randomInt(ports.length)] ?? 0;
  const end = async (selector: EndingSelector): Promise<void> => {
    const ending = buildEnding(hash.sha256, selector, clock.nowMs());
    const event = { type: "token.revoked", outcome: "allow", reason: "by_operator" } as const;
    assert.ok((await journal.record({ event, ending })).ok);
  };

  /** A user, the workload that acts for them, and the token of that; `again` asks for such a token once more. */
  async function prepare(kind: RaceKind) {
    const name = randomUUID();
    const iss = kind === "issuer" ? OTHER_IDP : IDP;
    const actor =
      kind === "trust_domain"
        ? `spiffe://${OTHER_DOMAIN}/a`
        : workload(`${kind === "consent" || kind === "rule" ? kind : "agents"}/${name}`);
    const origin = { iss, sub: `u-${name}` };
    const consent = { id: name, version: 1, origin, actor, targets: ["desk"], scopes };
    if (kind === "consent")
      assert.ok((await journal.record({ event: consentAdded(consent), consent: { add: consent } })).ok);
    const user = await world.idp.mintUserToken({
      sub: origin.sub,
      aud: ISSUER,
      scope: "read",
      claims: { iss },
    });
    const again = (port: number): Promise<Answer> => exchange(port, actor, user, JWT);
    const token = tokenOf(await again(anywhere()));
    const selectors: Record<RaceKind, EndingSelector> = {
      token: { by: "token", jti: jtiOf(token) },
      subject: { by: "subject", ...origin },
      actor: { by: "actor", spiffeId: actor },
      client: { by: "client", clientId: actor },
      consent: { by: "consent", id: name },
      rule: { by: "rule", id: "rule" },
      issuer: { by: "issuer", issuer: OTHER_IDP },
      trust_domain: { by: "trust_domain", name: OTHER_DOMAIN },
      everything: { by: "everything" },
    };
    return { token, again, selector: selectors[kind] };
  }

  const soon = async <T>(work: () => Promise<T>): Promise<T> => {
    await sleep(randomInt(SPREAD_MS));
    return work();
  };
  const isLiving = async (token: string): Promise<boolean> => {
    const facts = await store.facts.token(jtiOf(token));
    const answer = await exchange(anywhere(), booking, token, ACCESS_TOKEN);
    return facts?.ended === undefined || answer.status === 200;
  };

  return {
    async volley(kind, width) {
      // None of them expires within a volley.
      svids.clear();
      const parents = await Promise.all(Array.from({ length: width }, () => prepare(kind)));
      const asked = parents.flatMap(({ token, again }) => [
        ...ports.map((port) => () => exchange(port, booking, token, ACCESS_TOKEN)),
        // A token beside the ended one is no child of it.
        ...(kind === "token" ? [] : [() => again(anywhere())]),
      ]);
      const ended = (SHARED.includes(kind) ? parents.slice(0, 1) : parents).map(({ selector }) => selector);
      const [answers] = await Promise.all([
        Promise.all(asked.map(soon)),
        Promise.all(ended.map((selector) => soon(() => end(selector)))),
      ]);
      for (const { status, text } of answers) assert.ok(status === 200 || status === 400, text);
      const written = answers.filter(({ status }) => status === 200).map(tokenOf);
      const all = [...written, ...parents.map(({ token }) => token)];
      const living = (await Promise.all(all.map(isLiving))).filter((one) => one).length;
      return { races: asked.length, written: written.length, living };
    },
    // Times in tokens are whole seconds.
    settle: () => sleep(ENDING_REACH_MS + 1_100),
    async stop() {
      await journal.close();
      await store.close();
      for (const other of others) await other.stop();
      await world.stop();
    },
  };
}

function configuration(trusted: Record<string, object>): object {
  const bundleFile = { bundle: { file: "bundle.json" } };
  return {
    trustDomains: { "td.example": bundleFile, [OTHER_DOMAIN]: bundleFile },
    trustedIssuers: { ...trusted, [OTHER_IDP]: { ...trusted[IDP], subjects: { prefix: "o:" } } },
    targets: [{ names: ["desk"], owners: [booking], scopes }],
    policies: [
      {
        ...forUsers,
        ...implied,
        id: "first",
        actors: [workload("agents/*"), `spiffe://${OTHER_DOMAIN}/*`],
      },
      { ...forUsers, ...implied, id: "rule", actors: [workload("rule/*")] },
      { ...forUsers, id: "asked", actors: [workload("consent/*")], consent: "record" },
      { ...forUsers, ...implied, id: "onward", actors: [booking] },
    ],
    limits: { requestsPerSecondByClient: 1_000_000 },
  };
}

const jtiOf = (token: string): string => String(claimsOf(token).jti);

function tokenOf({ status, body, text }: Answer): string {
  assert.equal(status, 200, text);
  return String(body.access_token);
}
