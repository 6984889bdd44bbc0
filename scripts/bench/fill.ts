/**
 * Fills a store through the journal, so that every row is what the server itself would have written: delegations with
 * their token and the spent `jti` of their assertion, and for every tenth a client. Many batches share one commit.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { type JournalEntry, openJournal } from "../../src/adapters/audit/journal.ts";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import type { EventLog, StoreEntry } from "../../src/adapters/store/store.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import { endingKeys } from "../../src/policy/endings.ts";
import type { Clock } from "../../src/ports.ts";
import { ACCESS_TOKEN, JWT } from "../../src/spec/rfc8693.ts";

export type Fill = {
  log: string;
  /** Delegations; a tenth as many clients come on top. */
  count: number;
  /** The time of the first one; the next ones follow `everyMs` apart. */
  fromMs: number;
  everyMs: number;
  /** When all tokens and spent `jti` expire. */
  expiresAtSeconds: number;
  issuer: string;
  idpIssuer: string;
};

const USERS = 10_000;
const AGENTS = 1_000;
const CLIENT_EACH = 10;
/** Entries of one commit, and entries that are prepared at once. */
const COMMIT = 2_000;
const PREPARED = 200;

/** Writes what was appended in large commits; a conflict shows only then, which a log of its own excludes. */
function inLargeCommits(log: EventLog): { store: EventLog; flush(): Promise<void> } {
  let waiting: StoreEntry[] = [];
  const flush = async (): Promise<void> => {
    const batch = waiting;
    waiting = [];
    if (batch.length > 0 && (await log.append(batch)).length > 0) throw new Error("a condition failed");
  };
  const append: EventLog["append"] = async (batch) => {
    waiting.push(...batch);
    if (waiting.length >= COMMIT) await flush();
    return [];
  };
  return { store: { ...log, append }, flush };
}

/** The `jti` of one token in the middle. */
export async function fill(log: EventLog, asked: Fill): Promise<string> {
  const { store, flush } = inLargeCommits(log);
  let nowMs = asked.fromMs;
  const clock: Pick<Clock, "nowMs"> = { nowMs: () => nowMs };
  // A fatal error needs no handler, because every pending record() rejects with it.
  const journal = await openJournal({
    log: asked.log,
    store,
    clock: clock as Clock,
    random,
    onFatal: () => undefined,
  });
  let middle = "";
  for (let index = 0; index < asked.count; ) {
    const together: Promise<{ ok: boolean }>[] = [];
    for (const end = Math.min(index + PREPARED, asked.count); index < end; index++) {
      nowMs += asked.everyMs;
      const jti = random.id();
      if (index === Math.floor(asked.count / 2)) middle = jti;
      together.push(journal.record(delegation(asked, index, jti, nowMs)));
    }
    const recorded = await Promise.all(together);
    for (let clients = 0; clients < PREPARED / CLIENT_EACH; clients++) {
      recorded.push(await journal.record(newClient(nowMs)));
    }
    if (!recorded.every(({ ok }) => ok)) throw new Error("an entry could not be recorded");
  }
  await journal.close();
  await flush();
  return middle;
}

function delegation(
  { issuer, idpIssuer, expiresAtSeconds }: Fill,
  index: number,
  jti: string,
  timeMs: number,
): JournalEntry {
  const planner = `spiffe://dev.example/agents/a${index % AGENTS}`;
  const sub = `user-${(index * 7919) % USERS}`;
  const origin = { iss: idpIssuer, sub };
  const issuedAtSeconds = Math.floor(timeMs / 1000);
  const fingerprint = randomBytes(32).toString("base64url");
  const assertion = randomUUID();
  const audited = { iat: issuedAtSeconds - 5, exp: issuedAtSeconds + 300, aud: [issuer] };
  const kid = "Yz7Lq0wq0bQk1aTn";
  const [audience, scope, ruleId] = ["https://api.example", "trips.read", "crew-for-travellers"];
  const chain = [{ iss: issuer, sub: planner }];
  const event: AuditEvent = {
    type: "token_exchange.delegation",
    outcome: "allow",
    reason: "rule_match",
    request: { id: randomUUID(), endpoint: "/token", source_ip: "127.0.0.1" },
    client: {
      client_id: planner,
      auth_method: "spiffe_jwt",
      workload: planner,
      kid,
      aud: issuer,
      jti: assertion,
    },
    mode: "delegation",
    subject: {
      ...origin,
      kind: "user",
      token: { type: JWT, jti: randomUUID(), ...audited, scope, fingerprint },
    },
    actor: {
      iss: "spiffe://dev.example",
      sub: planner,
      token: { type: JWT, jti: assertion, ...audited, fingerprint },
    },
    requested: { audience: [audience], resource: [], scope },
    policy: { digest: `sha256:${"0".repeat(64)}`, rule_id: ruleId },
    granted: {
      jti,
      issued_token_type: ACCESS_TOKEN,
      token_type: "Bearer",
      sub,
      aud: audience,
      scope,
      exp: issuedAtSeconds + 300,
      fingerprint,
      act_depth: 1,
      kid,
      parent_jti: [],
    },
  };
  const issued = { jti, clientId: planner, workload: planner, origin, chain, ruleId, kid, issuedAtSeconds };
  return {
    event,
    token: {
      ...issued,
      subject: sub,
      audience,
      scope,
      ancestors: [],
      expiresAtSeconds,
      endingKeys: endingKeys(hash.sha256, issued, { issuedAtSeconds: issuedAtSeconds - 5 }),
    },
    guards: [{ kind: "jti_fresh", issuer: planner, jti: assertion, expiresAtSeconds }],
  };
}

function newClient(timeMs: number): JournalEntry {
  const clientId = random.id();
  return {
    event: {
      type: "client.registered",
      outcome: "allow",
      reason: "by_operator",
      detail: { client_id: clientId },
    },
    client: {
      add: {
        clientId,
        source: "operator",
        auth: { method: "client_secret_basic", secrets: [{ digest: randomBytes(32).toString("base64url") }] },
        grantTypes: ["client_credentials"],
      },
      atSeconds: Math.floor(timeMs / 1000),
    },
  };
}
