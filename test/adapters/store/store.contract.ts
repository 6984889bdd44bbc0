/** The contract of both stores. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "node:test";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import { loadMigrations, noteDone } from "../../../src/adapters/store/migrations.ts";
import { openExistingStore, openStore, openUnchangedStore } from "../../../src/adapters/store/open.ts";
import {
  type ClientChange,
  type KeyRow,
  LogConflict,
  type PolledRow,
  type SecretClient,
  type Store,
  type StoredEvent,
  type StoreEntry,
  StoreMisplaced,
} from "../../../src/adapters/store/store.ts";
import type { Consent } from "../../../src/policy/access.ts";
import { buildEnding, endingKeys, type Root } from "../../../src/policy/endings.ts";
import type { Guard, TokenFacts, TokenRecord } from "../../../src/records.ts";
import type { SecretDigest, StorePlace } from "../../../src/settings/settings.ts";
import { nextVersion } from "../../support/next-version.ts";
import { rounds } from "../../support/rounds.ts";

export type Opened = {
  /** Opens it, any number of times, with `how` in place of `openStore`; every store is closed after the test. */
  open(how?: (place: StorePlace) => Promise<Store>): Promise<Store>;
  /** Runs SQL without the store, for what no port can do; absent for a database in memory. */
  execute?: (sql: string) => Promise<void>;
  /** The rows of one statement, without the store. */
  select?: (sql: string) => Promise<readonly Record<string, unknown>[]>;
};

export type Harness = {
  /** The name of the store, for the names of the tests. */
  name: string;
  /** A database without rows; a bare one has no tables either. */
  create(t: TestContext, how?: { bare: boolean }): Promise<Opened>;
  /** Whether `execute` and `select` are present. */
  shared: boolean;
  /** The folder of its migrations. */
  sql: "sqlite" | "postgres";
};

export const ISSUER = "https://idp.example";
export const NOW_SECONDS = 1_790_000_000;

export function makeEvent(log: string, seq: number, body = `{"seq":${seq}}`): StoredEvent {
  const hashAt = (at: number): string => at.toString(16).padStart(64, "0");
  return {
    log,
    seq,
    id: randomUUID(),
    timeMs: NOW_SECONDS * 1000 + seq,
    type: "token.issued",
    body,
    prev: seq === 0 ? "" : hashAt(seq - 1),
    hash: hashAt(seq),
  };
}

/** Its keys are its own, and with `root` those of what it comes from. */
export function makeToken(values: Partial<TokenRecord> = {}, root?: Root): TokenRecord {
  const token = {
    jti: randomUUID(),
    clientId: "spiffe://td.example/agent",
    subject: "idp|alice",
    origin: { iss: ISSUER, sub: "alice" },
    audience: "https://api.example",
    scope: "trips.read trips.book",
    chain: [],
    ancestors: [],
    ruleId: "rule-1",
    issuedAtSeconds: NOW_SECONDS,
    expiresAtSeconds: NOW_SECONDS + 300,
    ...values,
  };
  return { ...token, endingKeys: values.endingKeys ?? endingKeys(hash.sha256, token, root) };
}

/** Whether a token is on record and no ending reaches it. */
export const isLive = (facts: TokenFacts | undefined): boolean =>
  facts !== undefined && facts.ended === undefined;

export const notEnded = ({ endingKeys: keys }: Pick<TokenRecord, "endingKeys">): Guard => ({
  kind: "not_ended",
  keys,
});

export function makeConsent(values: Partial<Consent> = {}): Consent {
  return {
    id: randomUUID(),
    version: 1,
    origin: { iss: ISSUER, sub: "alice" },
    actor: "spiffe://td.example/agent",
    targets: ["https://api.example"],
    scopes: ["trips.read"],
    ...values,
  };
}

export function makeClient(values: Partial<SecretClient> = {}): SecretClient {
  return {
    clientId: `c_${randomUUID()}`,
    source: "operator",
    auth: { method: "client_secret_basic", secrets: [{ digest: randomUUID() }] },
    grantTypes: ["client_credentials"],
    ...values,
  };
}

export function withSecrets(...secrets: SecretDigest[]): Partial<SecretClient> {
  return { auth: { method: "client_secret_basic", secrets } };
}

type Rotation = Extract<ClientChange, { rotate: unknown }>;

/** The rotation of an unchanged client; its older secrets expire a day later. */
export function rotation(clientId: string, values: Partial<Rotation> = {}): Rotation {
  return {
    rotate: clientId,
    version: 1,
    secret: { digest: randomUUID() },
    olderEndSeconds: NOW_SECONDS + 86_400,
    atSeconds: NOW_SECONDS,
    ...values,
  };
}

function fresh(
  jti: string,
  values: { kind?: "grant_fresh" | "proof_fresh"; issuer?: string; expiresAtSeconds?: number } = {},
): Guard {
  return { kind: "jti_fresh", issuer: ISSUER, jti, expiresAtSeconds: NOW_SECONDS + 330, ...values };
}

export function makeKey(values: Partial<KeyRow> = {}): KeyRow {
  const kid = randomUUID();
  const rest = { publicJwk: `{"kid":"${kid}"}`, privateJwe: "e30..x.y.z", createdAtSeconds: NOW_SECONDS };
  return { kid, alg: "ES256", purpose: "token", state: "active", ...rest, ...values };
}

function makePolled(values: Partial<PolledRow> = {}): PolledRow {
  return {
    kind: "trust_bundle",
    name: "td.example",
    location: "https://td.example/bundle x",
    body: '{"keys":[]}',
    loadedAtSeconds: NOW_SECONDS,
    ...values,
  };
}

/** Appends each entry in its own batch and returns the guards that failed. */
export class Writer {
  #seq = 0;
  readonly #store: Store;
  readonly #log: string;
  readonly #written = new Map<string, TokenRecord>();

  constructor(store: Store, log = "as-1") {
    this.#store = store;
    this.#log = log;
  }

  async write(entry: Omit<StoreEntry, "event">): Promise<readonly string[]> {
    const failures = await this.#store.log.append([{ ...entry, event: makeEvent(this.#log, this.#seq) }]);
    if (failures.length === 0) this.#seq++;
    return failures.map(({ guard }) => guard);
  }

  async token(values: Partial<TokenRecord> = {}): Promise<string> {
    const parent = this.#written.get(values.ancestors?.[0] ?? "");
    const token = makeToken(values, parent && { keys: parent.endingKeys });
    assert.deepEqual(await this.write({ token, isUse: true }), []);
    this.#written.set(token.jti, token);
    return token.jti;
  }

  /** The guard under which a token that comes from these is written. */
  guard(...jtis: readonly string[]): Guard {
    return notEnded({ endingKeys: jtis.flatMap((jti) => this.#written.get(jti)?.endingKeys ?? []) });
  }

  async consent(values: Partial<Consent> = {}): Promise<Consent> {
    const consent = makeConsent(values);
    assert.deepEqual(await this.write({ consent: { add: consent } }), []);
    return consent;
  }

  async withdraw(id: string): Promise<void> {
    assert.deepEqual(await this.write({ consent: { withdraw: id, atSeconds: NOW_SECONDS } }), []);
  }

  async client(values: Partial<SecretClient> = {}): Promise<SecretClient> {
    const client = makeClient(values);
    assert.deepEqual(await this.write({ client: { add: client, atSeconds: NOW_SECONDS } }), []);
    return client;
  }

  async disable(clientId: string): Promise<void> {
    assert.deepEqual(await this.write({ client: { disable: clientId, atSeconds: NOW_SECONDS + 1 } }), []);
  }
}

export function testStore({ name, create, shared, sql }: Harness): void {
  const check = (title: string, body: (open: () => Promise<Store>, t: TestContext) => Promise<void>) =>
    test(`${title} (${name})`, async (t) => body((await create(t)).open, t));

  // --- events -----------------------------------------------------------------------------------------------------

  const bodies = {
    "plain ASCII": '{"a":"b"}',
    "an escaped NUL and line ends": '{"a":"\\u0000\\r\\n\\u001f"}',
    "quotes and backslashes": '{"a":"\\"\\\\\\\\n\'"}',
    "characters of two, three and four bytes": '{"é":"€😀\u2028\ufeff"}',
    "text that is not normalised": '{"a":"e\u0301 é"}',
    "a long text": `{"a":"${"x".repeat(100_000)}"}`,
  };
  for (const [what, body] of Object.entries(bodies)) {
    check(`AUDIT-D-7 the exact text that was hashed is returned: ${what}`, async (open) => {
      const store = await open();
      const event = makeEvent("as-1", 0, body);
      assert.deepEqual(await store.log.append([{ event }]), []);
      assert.deepEqual(await store.log.read({ log: "as-1", limit: 10 }), [event]);
    });
  }

  check("RFC8417-5.3-1 each log in its own order is read, page by page", async (open) => {
    const store = await open();
    const events = [0, 1, 2, 3, 4].map((seq) => makeEvent("as-1", seq));
    const other = makeEvent("as-2", 0);
    await store.log.append([...events.slice(0, 2), other, ...events.slice(2)].map((event) => ({ event })));
    assert.deepEqual(await store.log.read({ log: "as-1", limit: 3 }), events.slice(0, 3));
    assert.deepEqual(await store.log.read({ log: "as-1", afterSeq: 2, limit: 3 }), events.slice(3));
    assert.deepEqual(await store.log.read({ log: "as-2", limit: 3 }), [other]);
    assert.deepEqual(await store.log.head("as-1"), { seq: 4, hash: events[4]?.hash });
  });

  check("a store without events has no logs and no heads", async (open) => {
    const store = await open();
    assert.deepEqual(await store.log.logs(), []);
    assert.equal(await store.log.head("as-1"), undefined);
  });

  check("lists every log once, by code unit", async (open) => {
    const store = await open();
    const places = [
      ["b", 0],
      ["a", 0],
      ["a", 1],
      ["B", 0],
      ["é", 0],
    ] as const;
    await store.log.append(places.map(([log, seq]) => ({ event: makeEvent(log, seq) })));
    assert.deepEqual(await store.log.logs(), ["B", "a", "b", "é"]);
  });

  check("a place in a log is written once, and a second write leaves nothing", async (open) => {
    const [one, two] = [await open(), await open()];
    const event = makeEvent("as-1", 0);
    await one.log.append([{ event }]);
    const token = makeToken();
    const late = [
      { event: makeEvent("as-1", 0), token, guards: [fresh("a")] },
      { event: makeEvent("as-1", 1) },
    ];
    await assert.rejects(async () => two.log.append(late), LogConflict);
    assert.deepEqual(await two.log.read({ log: "as-1", limit: 10 }), [event]);
    assert.equal(await two.facts.token(token.jti), undefined);
    assert.deepEqual(await two.log.append([{ event: makeEvent("as-1", 1), guards: [fresh("a")] }]), []);
  });

  check(
    "AUDIT-D-10 a record behind one that is missing, or another, is refused as a conflict",
    async (open) => {
      const store = await open();
      await store.log.append([{ event: makeEvent("as-1", 0) }]);
      const token = makeToken();
      for (const event of [makeEvent("as-1", 2), { ...makeEvent("as-1", 1), prev: "f".repeat(64) }]) {
        await assert.rejects(
          async () => store.log.append([{ event, token, guards: [fresh("a")] }]),
          LogConflict,
        );
      }
      assert.equal((await store.log.head("as-1"))?.seq, 0);
      assert.equal(await store.facts.token(token.jti), undefined);
      assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 1), guards: [fresh("a")] }]), []);
    },
  );

  check("of two simultaneous writers of one place, one gets the conflict", async (open) => {
    const [one, two] = [await open(), await open()];
    for (let seq = 0; seq < 10; seq++) {
      const tries = [one, two].map(async (store) => store.log.append([{ event: makeEvent("as-1", seq) }]));
      const outcomes = await Promise.allSettled(tries);
      const lost = outcomes.filter((outcome) => outcome.status === "rejected");
      assert.deepEqual(
        lost.map(({ reason }) => reason.name),
        ["LogConflict"],
      );
    }
  });

  // --- atomicity ----------------------------------------------------------------------------------------------------

  check("AUDIT-D-1 events, tokens, spent jti and consents are written together", async (open) => {
    const store = await open();
    const [first, second, consent] = [makeToken(), makeToken(), makeConsent()];
    const failures = await store.log.append([
      { event: makeEvent("as-1", 0), token: first, guards: [fresh("a")] },
      { event: makeEvent("as-1", 1), token: second, guards: [fresh("b")] },
      { event: makeEvent("as-1", 2), consent: { add: consent } },
    ]);
    assert.deepEqual(failures, []);
    assert.deepEqual(await store.log.head("as-1"), { seq: 2, hash: makeEvent("as-1", 2).hash });
    assert.deepEqual((await store.facts.token(first.jti))?.record, first);
    assert.deepEqual((await store.facts.token(second.jti))?.record, second);
    assert.deepEqual(await store.consents.list(), [consent]);
    const again = await store.log.append([{ event: makeEvent("as-1", 3), guards: [fresh("b")] }]);
    assert.deepEqual(again, [{ entry: 0, guard: "jti_fresh" }]);
  });

  check(
    "AUDIT-D-1 of a batch in which a guard fails nothing is written, and every failed guard is named",
    async (open) => {
      const store = await open();
      const writer = new Writer(store);
      assert.deepEqual(await writer.write({ guards: [fresh("spent")] }), []);
      const gone = makeToken();
      const ending = buildEnding(hash.sha256, { by: "token", jti: gone.jti }, NOW_SECONDS * 1000);
      assert.deepEqual(await writer.write({ ending }), []);
      const standing = await writer.consent();
      const [token, consent] = [makeToken(), makeConsent()];
      const batch: StoreEntry[] = [
        { event: makeEvent("as-1", 3), token, guards: [fresh("a")] },
        { event: makeEvent("as-1", 4), guards: [fresh("spent"), notEnded(gone)] },
        { event: makeEvent("as-1", 5), guards: [notEnded(gone)] },
        { event: makeEvent("as-1", 6), consent: { add: consent } },
        { event: makeEvent("as-1", 7), consent: { withdraw: standing.id, atSeconds: NOW_SECONDS } },
      ];
      assert.deepEqual(await store.log.append(batch), [
        { entry: 1, guard: "jti_fresh" },
        { entry: 1, guard: "not_ended" },
        { entry: 2, guard: "not_ended" },
      ]);
      assert.equal((await store.log.head("as-1"))?.seq, 2);
      assert.equal(await store.facts.token(token.jti), undefined);
      assert.deepEqual(await store.consents.list(), [standing]);
      // The jti of an entry whose own guards held is not spent either.
      assert.deepEqual(await writer.write({ guards: [fresh("a")] }), []);
    },
  );

  // --- reads of one turn --------------------------------------------------------------------------------------------

  check("reads that are asked for together answer each caller as when it asks alone", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const subjects = ["alice", "bob", "carol"].map((sub) => ({ iss: ISSUER, sub }));
    for (const origin of subjects.slice(0, 2)) {
      for (const id of ["b", "c", "a"]) await writer.consent({ id: `${id} of ${origin.sub}`, origin });
    }
    const { id: consentId } = await writer.consent();
    const parent = await writer.token({ consentId });
    const jtis = [parent, await writer.token({ ancestors: [parent] }), "none", parent, "\0"];
    const ending = buildEnding(hash.sha256, { by: "token", jti: parent }, NOW_SECONDS * 1000);
    assert.deepEqual(await writer.write({ ending }), []);
    const clients = [(await writer.client()).clientId, "none", (await writer.client()).clientId];
    const reads: (() => unknown)[] = [
      ...subjects.map((origin) => () => store.facts.consents(origin, makeConsent().actor, NOW_SECONDS)),
      ...jtis.map((jti) => () => store.facts.token(jti)),
      ...["none", ending.key].map((key) => () => store.endings.isEnded([{ key, sinceMs: 0 }])),
      ...clients.map((clientId) => () => store.clients.find(clientId)),
      ...["none", "a of alice"].map((id) => () => store.consents.find(id)),
      ...["none", "nothing"].map((digest) => () => store.families.find(digest)),
      ...["none", "nothing"].map((key) => () => store.shortLived.find("session", key, NOW_SECONDS)),
    ];
    const alone = [];
    for (const read of reads) alone.push(await read());
    assert.deepEqual(await Promise.all(reads.map((read) => read())), alone);
    const found = alone.filter((answer) => answer !== undefined && answer !== false);
    assert.equal(found.length, 10);
  });

  // --- spent jti ----------------------------------------------------------------------------------------------------

  check("RFC7523-3-14 a jti is spent once", async (open) => {
    const [one, two] = [await open(), await open()];
    const writer = new Writer(one);
    assert.deepEqual(await writer.write({ guards: [fresh("a")] }), []);
    assert.deepEqual(await writer.write({ guards: [fresh("a")] }), ["jti_fresh"]);
    assert.deepEqual(await new Writer(two, "as-2").write({ guards: [fresh("a")] }), ["jti_fresh"]);
  });

  const different = {
    "of another issuer": [fresh("a"), fresh("a", { issuer: "https://other.example" })],
    "with other capitals": [fresh("a"), fresh("A")],
    "with an unpaired surrogate": [fresh("\ud800"), fresh("\ud801"), fresh("\ufffd")],
    "with a NUL": [fresh("a"), fresh("a\0"), fresh("\0a")],
    "in another normal form": [fresh("é"), fresh("e\u0301")],
    "long and different at the end": [fresh("x".repeat(16_000)), fresh(`${"x".repeat(15_999)}y`)],
    empty: [fresh("a"), fresh("")],
    "with quotes": [fresh('"'), fresh('\\"')],
  };
  for (const [what, guards] of Object.entries(different)) {
    check(`RFC7523-3-14 a jti ${what} is distinguished`, async (open) => {
      const writer = new Writer(await open());
      for (const guard of guards) {
        assert.deepEqual(await writer.write({ guards: [guard] }), []);
        assert.deepEqual(await writer.write({ guards: [guard] }), ["jti_fresh"]);
      }
    });
  }

  check("RFC7523-3-14 a fractional expiry is accepted", async (open) => {
    const writer = new Writer(await open());
    const guard = fresh("a", { expiresAtSeconds: NOW_SECONDS + 0.5 });
    assert.deepEqual(await writer.write({ guards: [guard] }), []);
    assert.deepEqual(await writer.write({ guards: [guard] }), ["jti_fresh"]);
  });

  check("IDC-5.5-2 a grant is spent once, and its guard is named", async (open) => {
    const [one, two] = [await open(), await open()];
    const writer = new Writer(one);
    const grant = fresh("g", { kind: "grant_fresh" });
    assert.deepEqual(await writer.write({ guards: [fresh("a"), grant] }), []);
    assert.deepEqual(await writer.write({ guards: [fresh("b"), grant] }), ["grant_fresh"]);
    const both = await writer.write({ guards: [fresh("a"), grant] });
    assert.deepEqual(new Set(both), new Set(["jti_fresh", "grant_fresh"]));
    assert.deepEqual(await new Writer(two, "as-2").write({ guards: [grant] }), ["grant_fresh"]);
    // A jti of a refused entry is not spent.
    assert.deepEqual(await writer.write({ guards: [fresh("b")] }), []);
  });

  check("IDC-5.5-2 a jti spent as an assertion is not fresh as a grant, and vice versa", async (open) => {
    const writer = new Writer(await open());
    assert.deepEqual(await writer.write({ guards: [fresh("a")] }), []);
    assert.deepEqual(await writer.write({ guards: [fresh("a", { kind: "grant_fresh" })] }), ["grant_fresh"]);
    assert.deepEqual(await writer.write({ guards: [fresh("b", { kind: "grant_fresh" })] }), []);
    assert.deepEqual(await writer.write({ guards: [fresh("b")] }), ["jti_fresh"]);
  });

  check("RFC9449-11.1-2 a proof is fresh once for its key, on every instance", async (open) => {
    const [one, two] = [new Writer(await open()), new Writer(await open(), "as-2")];
    const proof = fresh("p", { kind: "proof_fresh", issuer: "dpop key-1" });
    assert.deepEqual(await one.write({ guards: [proof] }), []);
    for (const writer of [one, two])
      assert.deepEqual(await writer.write({ guards: [proof] }), ["proof_fresh"]);
    const ofAnother = fresh("p", { kind: "proof_fresh", issuer: "dpop key-2" });
    assert.deepEqual(await two.write({ guards: [fresh("p"), ofAnother] }), []);
  });

  check(
    "RFC7523-3-14 of two instances that spend one jti at the same time, exactly one succeeds",
    async (open) => {
      const writers = [new Writer(await open(), "as-1"), new Writer(await open(), "as-2")];
      for (let round = 0; round < rounds(4); round++) {
        const guards = [fresh(`jti-${round}`)];
        const outcomes = await Promise.all(writers.map((writer) => writer.write({ guards })));
        assert.deepEqual(outcomes.sort(), [[], ["jti_fresh"]], `round ${round}`);
      }
    },
  );

  check(
    "IDC-5.5-2 of two instances that spend one grant at the same time, exactly one succeeds",
    async (open) => {
      const writers = [new Writer(await open(), "as-1"), new Writer(await open(), "as-2")];
      for (let round = 0; round < rounds(4); round++) {
        const grant = fresh(`grant-${round}`, { kind: "grant_fresh" });
        const outcomes = await Promise.all(
          writers.map((writer) => writer.write({ guards: [grant, fresh(randomUUID())] })),
        );
        assert.deepEqual(outcomes.sort(), [[], ["grant_fresh"]], `round ${round}`);
      }
    },
  );

  check(
    "RFC7523-3-14 two instances that spend the same jti in opposite order do not deadlock",
    async (open) => {
      const logs = [
        { store: await open(), log: "as-1", seq: 0 },
        { store: await open(), log: "as-2", seq: 0 },
      ];
      for (let round = 0; round < rounds(4); round++) {
        const names = Array.from({ length: 20 }, (_, index) => `jti-${round}-${index}`);
        const outcomes = await Promise.all(
          logs.map(async (place, which) => {
            const jtis = which === 0 ? names : names.toReversed();
            const first = place.seq;
            const batch = jtis.map((jti, index) => ({
              event: makeEvent(place.log, first + index),
              guards: [fresh(jti)],
            }));
            const failures = await place.store.log.append(batch);
            if (failures.length === 0) place.seq += batch.length;
            return failures.length;
          }),
        );
        assert.deepEqual(
          outcomes.sort((a, b) => a - b),
          [0, 20],
          `round ${round}`,
        );
      }
    },
  );

  // --- tokens -------------------------------------------------------------------------------------------------------

  check("AUDIT-D-5 a token's row is returned unchanged", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const parent = await writer.token();
    const consent = await writer.consent();
    const full = makeToken({
      chain: [
        { iss: "https://as.example", sub: "spiffe://td.example/agent" },
        { iss: ISSUER, sub: 'a "quoted" \\ \u0000 é😀' },
      ],
      mayAct: { sub: "x", nested: { list: [1, 2.5, null, true] }, text: "\u0000" },
      ancestors: [parent],
      consentId: consent.id,
      confirmation: { jkt: "ieJgPBGOgcJzDHiliyznWq2nHk527PZHaBlYo6jTJEo" },
    });
    const plain = makeToken({ subject: "é€😀", scope: "" });
    for (const token of [full, plain]) {
      assert.deepEqual(await writer.write({ token }), []);
      const facts = await store.facts.token(token.jti);
      assert.deepEqual(facts?.record, token);
      assert.deepEqual(
        facts.ancestors.map(({ jti }) => jti),
        token.ancestors,
      );
      assert.deepEqual(facts.consents, token.consentId === undefined ? [] : [consent]);
      assert.ok(isLive(facts));
    }
  });

  check("a token without a row is unknown, also under a similar jti", async (open) => {
    const store = await open();
    const jti = await new Writer(store).token({ jti: "a\ufffd" });
    assert.notEqual(await store.facts.token(jti), undefined);
    for (const unknown of ["", "A\ufffd", "a\0", "a\ud800", "a\ufffd\0"]) {
      assert.equal(await store.facts.token(unknown), undefined, JSON.stringify(unknown));
    }
  });

  check("AUDIT-D-5 the facts of a token hold the records of its ancestors that exist", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const root = await writer.token();
    const parent = await writer.token({ ancestors: [root] });
    const child = await writer.token({ ancestors: [parent, root] });
    const orphan = await writer.token({ ancestors: [parent, "unknown"] });
    const behind = async (jti: string) => (await store.facts.token(jti))?.ancestors.map((one) => one.jti);
    assert.deepEqual(await behind(root), []);
    assert.deepEqual(await behind(child), [parent, root]);
    assert.deepEqual(await behind(orphan), [parent]);
  });

  // --- consents -----------------------------------------------------------------------------------------------------

  check("RFC7519-4.1.2-v1 consents are found by issuer and sub, never by sub alone", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const ours = await writer.consent();
    const theirs = await writer.consent({ origin: { iss: "https://other.example", sub: "alice" } });
    const bobs = await writer.consent({ origin: { iss: ISSUER, sub: "bob" } });
    for (const consent of [ours, theirs, bobs]) {
      assert.deepEqual(await store.facts.consents(consent.origin, consent.actor, NOW_SECONDS), [consent]);
      assert.deepEqual(await store.consents.list(consent.origin), [consent]);
    }
    const others = [
      { iss: ISSUER, sub: "Alice" },
      { iss: ISSUER, sub: "alice\0" },
      { iss: ISSUER, sub: "" },
      { iss: "", sub: "alice" },
    ];
    for (const origin of others) {
      assert.deepEqual(await store.facts.consents(origin, ours.actor, NOW_SECONDS), []);
      assert.deepEqual(await store.consents.list(origin), []);
    }
  });

  check(
    "RFC7519-4.1.2-v1 an unpaired surrogate does not find the consent of the replacement character",
    async (open) => {
      const store = await open();
      const consent = await new Writer(store).consent({ origin: { iss: ISSUER, sub: "\ufffd" } });
      assert.deepEqual(await store.facts.consents(consent.origin, consent.actor, NOW_SECONDS), [consent]);
      assert.deepEqual(
        await store.facts.consents({ iss: ISSUER, sub: "\ud800" }, consent.actor, NOW_SECONDS),
        [],
      );
      assert.deepEqual(await store.consents.list({ iss: ISSUER, sub: "\ud800" }), []);
    },
  );

  check("returns every consent for this actor in order, and none for another", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const b = await writer.consent({ id: "b" });
    const a = await writer.consent({ id: "a", targets: [], scopes: ["x", "y"] });
    const other = await writer.consent({ id: "c", actor: "spiffe://td.example/other" });
    assert.deepEqual(await store.facts.consents(a.origin, a.actor, NOW_SECONDS), [a, b]);
    assert.deepEqual(await store.facts.consents(a.origin, other.actor, NOW_SECONDS), [other]);
    assert.deepEqual(await store.facts.consents(a.origin, "spiffe://td.example/unknown", NOW_SECONDS), []);
    assert.deepEqual(await store.consents.list(), [a, b, other]);
  });

  check("a consent is valid until the second in which it expires", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const { id, version, origin, actor } = await writer.consent({ expiresAtSeconds: NOW_SECONDS + 10 });
    const times = [
      [NOW_SECONDS + 9.9, true],
      [NOW_SECONDS + 10, false],
      [NOW_SECONDS + 10.5, false],
    ] as const;
    for (const [nowSeconds, holds] of times) {
      assert.equal((await store.facts.consents(origin, actor, nowSeconds)).length, holds ? 1 : 0);
      const failed = await writer.write({ guards: [{ kind: "consent_current", id, version, nowSeconds }] });
      assert.deepEqual(failed, holds ? [] : ["consent_current"]);
    }
  });

  check("a guard on a consent checks its id and its version", async (open) => {
    const writer = new Writer(await open());
    const { id, version } = await writer.consent({ version: 3 });
    const cases = [
      [id, version, []],
      [id, version - 1, ["consent_current"]],
      [id, version + 1, ["consent_current"]],
      ["unknown", version, ["consent_current"]],
    ] as const;
    for (const [asked, of, want] of cases) {
      const guards = [{ kind: "consent_current", id: asked, version: of, nowSeconds: NOW_SECONDS } as const];
      assert.deepEqual(await writer.write({ guards }), want);
    }
  });

  check("withdrawing a consent revokes every token under it and their descendants", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const [kept, gone] = [await writer.consent(), await writer.consent()];
    const root = await writer.token();
    const under = await writer.token({ consentId: gone.id, ancestors: [root] });
    const below = await writer.token({ consentId: kept.id, ancestors: [under, root] });
    const beside = await writer.token({ consentId: kept.id, ancestors: [root] });
    const live = async () => {
      const found = [root, under, below, beside].map((jti) => store.facts.token(jti));
      return (await Promise.all(found)).map(isLive);
    };
    const current = { kind: "consent_current", id: gone.id, version: 1, nowSeconds: NOW_SECONDS } as const;
    assert.deepEqual(await live(), [true, true, true, true]);
    assert.deepEqual(await writer.write({ guards: [current] }), []);
    await writer.withdraw(gone.id);
    assert.deepEqual(await live(), [true, false, false, true]);
    assert.deepEqual(await store.facts.consents(gone.origin, gone.actor, NOW_SECONDS), [kept]);
    assert.deepEqual(
      (await store.consents.list()).filter(({ id }) => id === gone.id),
      [{ ...gone, version: 2, withdrawnAtSeconds: NOW_SECONDS }],
    );
    assert.deepEqual(await writer.write({ guards: [current] }), ["consent_current"]);
    // The new version is not current either.
    assert.deepEqual(await writer.write({ guards: [{ ...current, version: 2 }] }), ["consent_current"]);
    assert.deepEqual(await writer.write({ guards: [writer.guard(beside)] }), []);
    assert.deepEqual(await writer.write({ guards: [writer.guard(beside, under)] }), ["not_ended"]);
  });

  check("a consent is replaced only by its next version", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const first = await writer.consent({ expiresAtSeconds: NOW_SECONDS + 10 });
    const other = await writer.consent();
    const token = await writer.token({ consentId: first.id });
    const { expiresAtSeconds: _, ...lasting } = first;
    const second = { ...lasting, version: 2, targets: ["desk", "api"], scopes: ["a"] };
    for (const replace of [
      { ...second, version: 1 },
      { ...second, version: 3 },
      { ...second, id: "unknown" },
    ]) {
      assert.deepEqual(await writer.write({ consent: { replace } }), ["consent_current"]);
    }
    assert.deepEqual(await store.consents.find(first.id), first);
    assert.deepEqual(await writer.write({ consent: { replace: second } }), []);
    assert.deepEqual(await writer.write({ consent: { replace: second } }), ["consent_current"]);
    assert.deepEqual(await store.consents.find(first.id), second);
    assert.deepEqual(await store.consents.find(other.id), other);
    assert.deepEqual((await store.facts.consents(first.origin, first.actor, NOW_SECONDS + 20)).length, 2);
    assert.ok(isLive(await store.facts.token(token)));
    const current = { kind: "consent_current", id: first.id, nowSeconds: NOW_SECONDS } as const;
    assert.deepEqual(await writer.write({ guards: [{ ...current, version: 1 }] }), ["consent_current"]);
    assert.deepEqual(await writer.write({ guards: [{ ...current, version: 2 }] }), []);
    await writer.withdraw(first.id);
    const third = { ...second, version: 4 };
    assert.deepEqual(await writer.write({ consent: { replace: third } }), ["consent_current"]);
  });

  check("lists consents page by page, of one subject or of all, and finds each by its id", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const origin = { iss: ISSUER, sub: "bob" };
    const [a, c] = [await writer.consent({ id: "a" }), await writer.consent({ id: "c" })];
    const [b, d] = [await writer.consent({ id: "b", origin }), await writer.consent({ id: "d", origin })];
    assert.deepEqual(await store.consents.list(undefined, { limit: 3 }), [a, b, c]);
    assert.deepEqual(await store.consents.list(undefined, { afterId: "c", limit: 3 }), [d]);
    assert.deepEqual(await store.consents.list(origin, { limit: 1 }), [b]);
    assert.deepEqual(await store.consents.list(origin, { afterId: "b", limit: 1 }), [d]);
    assert.deepEqual(await store.consents.list(origin, { afterId: "d", limit: 1 }), []);
    assert.deepEqual(await store.consents.find("b"), b);
    for (const id of ["x", "", "\0", "\ud800"]) assert.equal(await store.consents.find(id), undefined);
  });

  check(
    "HTTP-D-58 lists the standing consents of one subject page by page, each with the time at which it was first given",
    async (open) => {
      const store = await open();
      const writer = new Writer(store);
      const origin = { iss: ISSUER, sub: "bob" };
      for (const id of ["a", "c", "e"]) await writer.consent({ id, origin });
      await writer.consent({ id: "b" });
      await writer.consent({ id: "d", origin, expiresAtSeconds: NOW_SECONDS + 10 });
      await writer.withdraw("a");
      const standing = async (page: { nowSeconds: number; afterId?: string; limit: number }) =>
        (await store.consents.standing(origin, page)).map(({ id }) => id);
      const nowSeconds = NOW_SECONDS;
      assert.deepEqual(await standing({ nowSeconds, limit: 10 }), ["c", "d", "e"]);
      assert.deepEqual(await standing({ nowSeconds, limit: 1 }), ["c"]);
      assert.deepEqual(await standing({ nowSeconds, afterId: "c", limit: 10 }), ["d", "e"]);
      assert.deepEqual(await standing({ nowSeconds: nowSeconds + 10, limit: 10 }), ["c", "e"]);
      assert.deepEqual(
        await store.consents.standing({ iss: ISSUER, sub: "\0" }, { nowSeconds, limit: 9 }),
        [],
      );
      const [before] = await store.consents.standing(origin, { nowSeconds, limit: 1 });
      assert.equal(before?.givenAtSeconds, NOW_SECONDS);
      const { givenAtSeconds, ...consent } = before;
      const replaced = { ...consent, version: 2, scopes: ["other"] };
      assert.deepEqual(await writer.write({ consent: { replace: replaced } }), []);
      const [after] = await store.consents.standing(origin, { nowSeconds, limit: 1 });
      assert.deepEqual(after, { ...replaced, givenAtSeconds });
    },
  );

  check("a consent is recorded once and withdrawn once", async (open) => {
    const writer = new Writer(await open());
    const consent = await writer.consent();
    assert.deepEqual(await writer.write({ consent: { add: consent } }), ["consent_current"]);
    const withdrawal = { consent: { withdraw: consent.id, atSeconds: NOW_SECONDS } };
    assert.deepEqual(await writer.write(withdrawal), []);
    assert.deepEqual(await writer.write(withdrawal), ["consent_current"]);
    const unknown = { consent: { withdraw: "unknown", atSeconds: NOW_SECONDS } };
    assert.deepEqual(await writer.write(unknown), ["consent_current"]);
  });

  check("of two instances that change one consent at the same time, one succeeds", async (open) => {
    const writers = [new Writer(await open(), "as-1"), new Writer(await open(), "as-2")];
    for (let round = 0; round < rounds(4); round++) {
      const add = makeConsent();
      const added = await Promise.all(writers.map((writer) => writer.write({ consent: { add } })));
      assert.deepEqual(added.sort(), [[], ["consent_current"]], `added in round ${round}`);
      const consent = { withdraw: add.id, atSeconds: NOW_SECONDS };
      const withdrawn = await Promise.all(writers.map((writer) => writer.write({ consent })));
      assert.deepEqual(withdrawn.sort(), [[], ["consent_current"]], `withdrawn in round ${round}`);
    }
  });

  // --- clients ------------------------------------------------------------------------------------------------------

  const secretsOf = async (store: Store, clientId: string) => {
    const found = await store.clients.find(clientId);
    return found !== undefined && "auth" in found ? found.auth.secrets : undefined;
  };

  check("returns a client unchanged, and lists it without the digests of its secrets", async (open) => {
    const [one, two] = [await open(), await open()];
    const writer = new Writer(one);
    const secrets = [{ digest: "a" }, { digest: "b", expiresAtSeconds: NOW_SECONDS + 10 }];
    const full = await writer.client({
      clientId: "c_b",
      auth: { method: "client_secret_post", secrets },
      grantTypes: ["client_credentials", "urn:x:y"],
      workload: "spiffe://td.example/agents/a",
      defaultTarget: 'https://api.example/é"\\😀',
    });
    const plain = await writer.client({ clientId: "c_a", grantTypes: [] });
    assert.deepEqual(await two.clients.find("c_b"), full);
    assert.deepEqual(await two.clients.find("c_a"), plain);
    const common = { version: 1, createdAtSeconds: NOW_SECONDS };
    const { auth: hidden, ...shown } = full;
    const shownFull = {
      ...shown,
      ...common,
      method: "client_secret_post" as const,
      secrets: [
        { createdAtSeconds: NOW_SECONDS },
        { createdAtSeconds: NOW_SECONDS, expiresAtSeconds: NOW_SECONDS + 10 },
      ],
    };
    assert.deepEqual(await two.clients.list("c_b"), [shownFull]);
    const [first, second, ...more] = await two.clients.list();
    assert.deepEqual([first?.clientId, first?.grantTypes, second, more], ["c_a", [], shownFull, []]);
  });

  check("RFC6749-2.2-1 a client_id names one client and is compared exactly", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const one = await writer.client({ clientId: "c_a\ufffd" });
    const other = await writer.client({ clientId: "C_a\ufffd" });
    assert.deepEqual(await store.clients.find(one.clientId), one);
    assert.deepEqual(await store.clients.find(other.clientId), other);
    for (const unknown of ["", "c_A\ufffd", "c_a", "c_a\ufffd\0", "c_a\ud800", "c_a\ufffd "]) {
      assert.equal(await store.clients.find(unknown), undefined, JSON.stringify(unknown));
      assert.deepEqual(await store.clients.list(unknown), [], JSON.stringify(unknown));
    }
  });

  check("RFC6749-2.2-1 a client_id is given once, even if its client is disabled", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const { clientId } = await writer.client();
    const again = { client: { add: makeClient({ clientId }), atSeconds: NOW_SECONDS } };
    assert.deepEqual(await writer.write(again), ["client_current"]);
    await writer.disable(clientId);
    assert.deepEqual(await writer.write(again), ["client_current"]);
    assert.equal(await store.clients.find(clientId), undefined);
  });

  check("RFC7591-3.2.1-4 no two clients have the same secret, and no client has one twice", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const [one, two] = [await writer.client(withSecrets({ digest: "a" })), await writer.client()];
    const third = makeClient(withSecrets({ digest: "b" }, { digest: "a" }));
    const secret = { digest: "a" };
    assert.deepEqual(await writer.write({ client: { add: third, atSeconds: NOW_SECONDS } }), [
      "client_current",
    ]);
    for (const { clientId } of [one, two]) {
      assert.deepEqual(await writer.write({ client: rotation(clientId, { secret }) }), ["client_current"]);
    }
    assert.equal(await store.clients.find(third.clientId), undefined);
    assert.deepEqual(await store.clients.find(two.clientId), two);
    // The secret of a refused client may be used.
    await writer.client(withSecrets({ digest: "b" }));
  });

  const DAY = 86_400;
  const rotations: readonly (readonly [string, number | undefined, number, number | undefined | "gone"])[] = [
    ["without expiry gets one", undefined, DAY, DAY],
    ["that expires later expires earlier", DAY + 1, DAY, DAY],
    ["that expires then is unchanged", DAY, DAY, DAY],
    ["that expires sooner is unchanged", DAY - 1, DAY, DAY - 1],
    ["that has expired is removed", 0, DAY, "gone"],
    ["that expired long ago is removed", -DAY, DAY, "gone"],
    ["without expiry is removed if there is no overlap", undefined, 0, "gone"],
    ["that expires later is removed if there is no overlap", 1, 0, "gone"],
  ];
  for (const [what, expires, overlap, want] of rotations) {
    check(`rotation: an older secret ${what}`, async (open) => {
      const store = await open();
      const writer = new Writer(store);
      const ends = expires === undefined ? {} : { expiresAtSeconds: NOW_SECONDS + expires };
      const { clientId } = await writer.client(withSecrets({ digest: "old", ...ends }));
      const other = await writer.client();
      const secret = { digest: "new", expiresAtSeconds: NOW_SECONDS + 2 * DAY };
      const client = rotation(clientId, {
        secret,
        atSeconds: NOW_SECONDS,
        olderEndSeconds: NOW_SECONDS + overlap,
      });
      assert.deepEqual(await writer.write({ client }), []);
      const left = await secretsOf(store, clientId);
      const old = typeof want === "number" ? [{ digest: "old", expiresAtSeconds: NOW_SECONDS + want }] : [];
      assert.deepEqual(new Set(left), new Set([...old, secret]));
      assert.deepEqual(await store.clients.find(other.clientId), other);
    });
  }

  check(
    "each rotation applies to the result of the previous one and removes secrets that have expired by then",
    async (open) => {
      const store = await open();
      const writer = new Writer(store);
      const { clientId } = await writer.client(withSecrets({ digest: "1" }));
      const at = (version: number, seconds: number) =>
        writer.write({
          client: rotation(clientId, {
            version,
            secret: { digest: `${version + 1}` },
            atSeconds: NOW_SECONDS + seconds,
            olderEndSeconds: NOW_SECONDS + seconds + 100,
          }),
        });
      assert.deepEqual(await at(1, 0), []);
      assert.deepEqual(await at(2, 50), []);
      assert.deepEqual(await at(3, 120), []);
      assert.deepEqual(await secretsOf(store, clientId), [
        { digest: "2", expiresAtSeconds: NOW_SECONDS + 150 },
        { digest: "3", expiresAtSeconds: NOW_SECONDS + 220 },
        { digest: "4" },
      ]);
      assert.equal((await store.clients.list(clientId))[0]?.version, 4);
    },
  );

  check("refuses a rotation of another version and of a disabled client", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const [kept, gone] = [await writer.client(), await writer.client()];
    await writer.disable(gone.clientId);
    const refused = [
      rotation("c_unknown"),
      rotation(kept.clientId, { version: 0 }),
      rotation(kept.clientId, { version: 2 }),
      rotation(gone.clientId),
      rotation(gone.clientId, { version: 2 }),
    ];
    for (const client of refused) assert.deepEqual(await writer.write({ client }), ["client_current"]);
    assert.deepEqual(await store.clients.find(kept.clientId), kept);
    assert.equal((await store.clients.list(gone.clientId))[0]?.secrets.length, 1);
    assert.deepEqual(await writer.write({ client: rotation(kept.clientId) }), []);
  });

  check("a disabled client is found by no instance and is disabled once", async (open) => {
    const [one, two] = [await open(), await open()];
    const writer = new Writer(one);
    const [kept, gone] = [await writer.client(), await writer.client()];
    assert.deepEqual(await two.clients.find(gone.clientId), gone);
    await writer.disable(gone.clientId);
    assert.equal(await two.clients.find(gone.clientId), undefined);
    assert.deepEqual(await two.clients.find(kept.clientId), kept);
    const [listed] = await two.clients.list(gone.clientId);
    assert.deepEqual([listed?.disabledAtSeconds, listed?.version], [NOW_SECONDS + 1, 2]);
    for (const disable of [gone.clientId, "c_unknown"]) {
      const again = await writer.write({ client: { disable, atSeconds: NOW_SECONDS + 2 } });
      assert.deepEqual(again, ["client_current"]);
    }
    assert.equal((await two.clients.list(gone.clientId))[0]?.disabledAtSeconds, NOW_SECONDS + 1);
  });

  check("disabling a client revokes every token issued to it and their descendants", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const [kept, gone] = [await writer.client(), await writer.client()];
    const root = await writer.token();
    const issued = await writer.token({ clientId: gone.clientId, ancestors: [root] });
    const below = await writer.token({ clientId: kept.clientId, ancestors: [issued, root] });
    const beside = await writer.token({ clientId: kept.clientId, ancestors: [root] });
    const live = async () => {
      const found = [root, issued, below, beside].map((jti) => store.facts.token(jti));
      return (await Promise.all(found)).map(isLive);
    };
    const standing = { guards: [writer.guard(issued)] };
    assert.deepEqual(await live(), [true, true, true, true]);
    assert.deepEqual(await writer.write(standing), []);
    await writer.disable(gone.clientId);
    assert.deepEqual(await live(), [true, false, false, true]);
    assert.deepEqual(await writer.write(standing), ["not_ended"]);
  });

  check("AUDIT-D-1 a refused change of a client leaves nothing of its batch", async (open) => {
    const store = await open();
    const writer = new Writer(store);
    const client = await writer.client();
    const [token, added] = [makeToken(), makeClient()];
    const batch: StoreEntry[] = [
      { event: makeEvent("as-1", 1), token },
      { event: makeEvent("as-1", 2), client: { add: added, atSeconds: NOW_SECONDS } },
      { event: makeEvent("as-1", 3), client: rotation(client.clientId) },
      { event: makeEvent("as-1", 4), client: { disable: "c_unknown", atSeconds: NOW_SECONDS } },
    ];
    assert.deepEqual(await store.log.append(batch), [{ entry: 3, guard: "client_current" }]);
    assert.equal((await store.log.head("as-1"))?.seq, 0);
    assert.equal(await store.facts.token(token.jti), undefined);
    assert.equal(await store.clients.find(added.clientId), undefined);
    assert.deepEqual(await store.clients.find(client.clientId), client);
    assert.deepEqual(await store.log.append(batch.slice(0, 3)), []);
    assert.equal((await store.log.head("as-1"))?.seq, 3);
    assert.deepEqual(await store.clients.find(added.clientId), added);
    assert.equal((await secretsOf(store, client.clientId))?.length, 2);
  });

  check("of two instances that add one client or secret at the same time, one succeeds", async (open) => {
    const writers = [new Writer(await open(), "as-1"), new Writer(await open(), "as-2")];
    for (let round = 0; round < rounds(4); round++) {
      const same = [{ clientId: `c_${round}` }, withSecrets({ digest: `digest ${round}` })];
      for (const values of same) {
        const outcomes = await Promise.all(
          writers.map((writer) =>
            writer.write({ client: { add: makeClient(values), atSeconds: NOW_SECONDS } }),
          ),
        );
        assert.deepEqual(outcomes.sort(), [[], ["client_current"]], `round ${round}`);
      }
    }
  });

  check("of two instances that rotate one client's secret at the same time, one succeeds", async (open) => {
    const stores = [await open(), await open()];
    const writers = stores.map((store, index) => new Writer(store, `as-${index}`));
    for (let round = 0; round < rounds(4); round++) {
      const client = makeClient(withSecrets({ digest: `old ${round}` }));
      await writers[0]?.write({ client: { add: client, atSeconds: NOW_SECONDS } });
      const digests = ["x", "y"].map((which) => `${which} ${round}`);
      const outcomes = await Promise.all(
        writers.map((writer, index) => {
          const secret = { digest: digests[index] ?? "" };
          return writer.write({ client: rotation(client.clientId, { secret }) });
        }),
      );
      const winner = digests[outcomes.findIndex((failed) => failed.length === 0)];
      assert.deepEqual(outcomes.sort(), [[], ["client_current"]], `round ${round}`);
      for (const store of stores) {
        assert.deepEqual(
          new Set(await secretsOf(store, client.clientId)),
          new Set([{ digest: `old ${round}`, expiresAtSeconds: NOW_SECONDS + DAY }, { digest: winner }]),
        );
      }
    }
  });

  check("disabling a client while its secret is rotated always succeeds", async (open) => {
    const [one, two] = [await open(), await open()];
    const [rotating, disabling] = [new Writer(one, "as-1"), new Writer(two, "as-2")];
    for (let round = 0; round < rounds(4); round++) {
      const { clientId } = await rotating.client();
      const rotate = () => rotating.write({ client: rotation(clientId) });
      const disable = () => disabling.write({ client: { disable: clientId, atSeconds: NOW_SECONDS } });
      // Each of the two begins in half of the rounds.
      const going = round % 2 === 0 ? [rotate(), disable()] : [disable(), rotate()];
      const outcomes = await Promise.all(going);
      const [rotated, disabled] = round % 2 === 0 ? outcomes : outcomes.toReversed();
      assert.deepEqual(disabled, [], `round ${round}`);
      assert.ok(rotated?.length === 0 || rotated?.[0] === "client_current", `round ${round}`);
      for (const store of [one, two]) {
        assert.equal(await store.clients.find(clientId), undefined);
        const [listed] = await store.clients.list(clientId);
        const want: readonly number[] = rotated.length === 0 ? [3, 2] : [2, 1];
        assert.deepEqual([listed?.version, listed?.secrets.length], want, `round ${round}`);
      }
    }
  });

  // --- keys ---------------------------------------------------------------------------------------------------------

  check("returns keys unchanged, in order of their creation", async (open) => {
    const store = await open();
    const newer = makeKey({ createdAtSeconds: NOW_SECONDS + 1, alg: "EdDSA" });
    const older = makeKey();
    assert.equal(await store.keys.insertIfNone(newer), true);
    assert.equal(await store.keys.insertIfNone(older), true);
    assert.deepEqual(await store.keys.list(), [older, newer]);
  });

  check(
    "at most one key of an algorithm and purpose is active; others may be announced or retired",
    async (open) => {
      const store = await open();
      const active = makeKey();
      assert.equal(await store.keys.insertIfNone(active), true);
      assert.equal(await store.keys.insertIfNone(makeKey()), false);
      assert.equal(await store.keys.insertIfNone({ ...active, state: "retired" }), false);
      assert.deepEqual(await store.keys.list(), [active]);
      assert.equal(await store.keys.insertIfNone(makeKey({ state: "announced" })), true);
      assert.equal(await store.keys.insertIfNone(makeKey({ state: "retired" })), true);
      assert.equal(await store.keys.insertIfNone(makeKey({ alg: "RS256" })), true);
      assert.equal(await store.keys.insertIfNone(makeKey({ purpose: "checkpoint" })), true);
      assert.equal(await store.keys.insertIfNone(makeKey({ purpose: "checkpoint" })), false);
      assert.equal(await store.keys.insertIfNone(makeKey({ purpose: "grant" })), true);
      assert.equal(await store.keys.insertIfNone(makeKey({ purpose: "grant" })), false);
      assert.equal((await store.keys.list()).length, 6);
    },
  );

  check("two instances that start at the same time have one key", async (open) => {
    const stores = [await open(), await open()];
    const made = await Promise.all(stores.map((store) => store.keys.insertIfNone(makeKey())));
    assert.deepEqual(made.sort(), [false, true]);
    const [one, two] = await Promise.all(stores.map((store) => store.keys.list()));
    assert.equal(one?.length, 1);
    assert.deepEqual(one, two);
  });

  // --- stored documents ---------------------------------------------------------------------------------------------

  check("SBN-3-1 a document by its kind and name is returned, unchanged", async (open) => {
    const store = await open();
    const rows = [
      makePolled({ body: `{"keys":[], "ä": "\u{1f600}"}`, sequence: Number.MAX_SAFE_INTEGER }),
      makePolled({ name: "other.example" }),
      makePolled({ kind: "issuer_keys", location: "https://elsewhere.example x" }),
    ];
    for (const row of rows) await store.polled.save(row);
    const second = await open();
    for (const row of rows) assert.deepEqual(await second.polled.find(row.kind, row.name), row);
    assert.equal(await second.polled.find("client_keys", "td.example"), undefined);
    assert.equal(await second.polled.find("trust_bundle", "TD.example"), undefined);
  });

  const successors: [what: string, old: Partial<PolledRow>, next: Partial<PolledRow>, isStored: boolean][] = [
    ["a higher sequence", { sequence: 2 }, { sequence: 3 }, true],
    ["the same sequence", { sequence: 2 }, { sequence: 2 }, true],
    ["a lower sequence", { sequence: 2 }, { sequence: 1 }, false],
    ["no sequence after one", { sequence: 2 }, {}, true],
    ["a sequence after none", {}, { sequence: 1 }, true],
    ["no sequence", {}, {}, true],
    ["a lower sequence from another location", { sequence: 2 }, { sequence: 1, location: "elsewhere" }, true],
  ];
  for (const [what, old, next, isStored] of successors) {
    check(
      `SFD-4.2-2 ${isStored ? "replaces" : "does not replace"} a stored document by one with ${what}`,
      async (open) => {
        const store = await open();
        const [first, second] = [makePolled({ body: "1", ...old }), makePolled({ body: "2", ...next })];
        await store.polled.save(first);
        await store.polled.save(second);
        assert.deepEqual(await store.polled.find("trust_bundle", "td.example"), isStored ? second : first);
      },
    );
  }

  check(
    "SFD-4.2-1 a stored document gets another time, unless another one was stored since",
    async (open) => {
      const store = await open();
      const rows = [makePolled(), makePolled({ name: "other.example" }), makePolled({ kind: "issuer_keys" })];
      for (const row of rows) await store.polled.save(row);
      const [first, ...others] = rows as [PolledRow, ...PolledRow[]];
      const { kind, name, loadedAtSeconds: from } = first;
      await store.polled.redate(kind, name, from + 1, 1);
      assert.deepEqual(await store.polled.find(kind, name), first);
      await store.polled.redate(kind, name, from, 1);
      assert.deepEqual(await store.polled.find(kind, name), { ...first, loadedAtSeconds: 1 });
      for (const row of others) assert.deepEqual(await store.polled.find(row.kind, row.name), row);
    },
  );

  check("SFD-6.3-1 the named documents of one kind and all of other kinds are retained", async (open) => {
    const store = await open();
    const names = ["td.example", "quote ' and \"", "gone.example"];
    for (const name of names) await store.polled.save(makePolled({ name }));
    await store.polled.save(makePolled({ kind: "client_keys", name: "gone.example" }));
    await store.polled.retain("trust_bundle", names.slice(0, 2));
    const found = await Promise.all(names.map((name) => store.polled.find("trust_bundle", name)));
    assert.deepEqual(
      found.map((row) => row?.name),
      [...names.slice(0, 2), undefined],
    );
    await store.polled.retain("trust_bundle", []);
    assert.equal(await store.polled.find("trust_bundle", "td.example"), undefined);
    assert.ok(await store.polled.find("client_keys", "gone.example"));
  });

  // --- migrations ---------------------------------------------------------------------------------------------------

  if (shared) {
    check("a store that is opened again has its events", async (open) => {
      const first = await open();
      const event = makeEvent("as-1", 0);
      await first.log.append([{ event }]);
      await first.close();
      const second = await open();
      assert.deepEqual(await second.log.read({ log: "as-1", limit: 10 }), [event]);
    });

    test(`instances that start at the same time on an empty database all start (${name})`, async (t) => {
      const { open } = await create(t, { bare: true });
      const stores = await Promise.all(Array.from({ length: 12 }, () => open()));
      for (const store of stores) assert.deepEqual(await store.log.logs(), []);
    });

    test(`a client whose method only a newer version has is unknown, and listed (${name})`, async (t) => {
      const { open, execute } = await create(t);
      const store = await open();
      await execute?.(
        `insert into client (client_id, version, method, grant_types, created_at)
         values ('c_new', 1, 'client_secret_of_later', '["a"]', ${NOW_SECONDS});
         insert into client_secret (digest, client_id, created_at) values ('d', 'c_new', ${NOW_SECONDS})`,
      );
      assert.equal(await store.clients.find("c_new"), undefined);
      if (execute !== undefined) {
        assert.equal((await store.clients.list("c_new"))[0]?.method, "client_secret_of_later");
      }
    });

    test(`CONF-D-12 a newer version's additive migrations are no obstacle, others are refused (${name})`, async (t) => {
      const { open, execute } = await create(t, { bare: true });
      await open();
      // Both stores have the same numbers.
      const known = loadMigrations("sqlite").length;
      assert.equal(loadMigrations("postgres").length, known);
      const note = (number: number, additive: boolean) => execute?.(noteDone({ number, text: "", additive }));
      await note(known + 1, true);
      await execute?.("alter table event add column later text");
      const older = await open();
      assert.deepEqual(await older.log.append([{ event: makeEvent("as-1", 0) }]), []);
      await note(known + 2, false);
      await note(known + 3, true);
      const refusal = new RegExp(`at migration ${known + 2}, .* knows only ${known}:`);
      await assert.rejects(open(), refusal);
    });

    test(`CONF-D-12 the next version adds to the database while this one serves, and takes it over (${name})`, async (t) => {
      const { open, select } = await create(t, { bare: true });
      const event = makeEvent("as-1", 0);
      const store = await open();
      assert.deepEqual(await store.log.append([{ event }]), []);
      const next = await nextVersion(t, "alter table event add column later text");
      await assert.rejects(open(next.openUnchangedStore), /of an older version \(1 of 2 migrations\)/);
      const newer = await open(next.openStore);
      assert.deepEqual(await newer.log.read({ log: "as-1", limit: 10 }), [event]);
      // This version goes on beside it, and is the way back.
      assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 1) }]), []);
      const returned = await open();
      assert.equal((await returned.log.head("as-1"))?.seq, 1);
      const found = (await select?.("select number from migration order by number")) ?? [];
      assert.deepEqual(
        found.map(({ number }) => Number(number)),
        [1, 2],
      );
    });

    test(`CONF-D-12 a database to which the next version does more than add is refused by this one (${name})`, async (t) => {
      const { open } = await create(t, { bare: true });
      await open();
      const next = await nextVersion(t, "-- Not additive: this version reads it.\ndrop table restored");
      await open(next.openStore);
      await assert.rejects(open(), /at migration 2, which is not additive, but this version knows only 1:/);
    });

    test(`CONF-D-23 a database of a version before the first release is refused, and not changed (${name})`, async (t) => {
      const { open, execute, select } = await create(t, { bare: true });
      await execute?.(
        "create table migration (number integer primary key); create table event (log text); create view live_token as select log from event",
      );
      await execute?.("insert into migration (number) values (36)");
      for (const how of [openStore, openUnchangedStore, openExistingStore])
        await assert.rejects(open(how), (fault) => {
          assert.ok(fault instanceof StoreMisplaced, String(fault));
          assert.match(fault.message, /before the first release, [^\n]+: name a new database$/);
          return true;
        });
      assert.deepEqual(
        (await select?.("select * from migration"))?.map(({ number }) => Number(number)),
        [36],
      );
    });

    test(`migrations behind the first only add, unless they say that they do not (${name})`, () => {
      for (const { number, text, additive } of loadMigrations(sql).slice(1))
        assert.deepEqual(additive ? notAdding(text) : [], [], `migration ${number}`);
      const adding = `create table a (b text not null); create unique index c on a (b);
        alter table event add column d text; alter table event add column e bigint not null default 0`;
      assert.deepEqual(notAdding(adding), []);
      for (const one of [
        "alter table event add column d text not null",
        "drop index event_by_time",
        "update event set type = ''",
        "alter table event drop column type",
      ])
        assert.deepEqual(notAdding(one), [one]);
    });
  }
}

/** The statements of a migration beside which the version before could not serve on. */
function notAdding(text: string): readonly string[] {
  const ADDS =
    /^(create (unique )?(table|index)|insert into|alter table \w+ (add column|set \(autovacuum_\w+))\b/;
  const statements = text.replace(/--.*/g, "").split(";");
  return statements
    .map((one) => one.trim())
    .filter((one) => one !== "")
    .filter((one) => {
      const isEmpty = /^alter table \w+ add/.test(one) && /not null/.test(one) && !/default/.test(one);
      return isEmpty || !ADDS.test(one);
    });
}
