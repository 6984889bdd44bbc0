/** Clients with a secret in the store (RFC 6749 2.2, 2.3.1): each change and its event in one step. */
import { randomBytes } from "node:crypto";
import { clock, hash, random } from "../../src/adapters/crypto/system.ts";
import type { SecretClient, StoredClient } from "../../src/adapters/store/store.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import type { SecretDigest, Settings } from "../../src/settings/settings.ts";
import { CLIENT_ID_PREFIX } from "../../src/spec/rfc7591.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { isWorkloadId, parseSpiffeId } from "../../src/spec/spiffe/id.ts";
import type { Admin } from "../admin/record.ts";
import { describeOperator, describePolicy, recordAsAdmin } from "../admin/record.ts";
import { fields, time, word, words } from "../admin/text.ts";

type SecretWish = { expiresInSeconds?: number; json: boolean };

export type ClientWish = SecretWish & {
  method: SecretClient["auth"]["method"];
  grantTypes: readonly string[];
  workload?: string;
  defaultTarget?: string;
};

export type RotationWish = SecretWish & { clientId: string; overlapSeconds: number };

const nowSeconds = (): number => Math.floor(clock.nowMs() / 1000);

type NewSecret = { secret: string; stored: SecretDigest };

function makeSecret(atSeconds: number, { expiresInSeconds }: SecretWish): NewSecret {
  // RFC6749-10.10-3: 256 random bits.
  const secret = randomBytes(32).toString("base64url");
  const ends = expiresInSeconds === undefined ? {} : { expiresAtSeconds: atSeconds + expiresInSeconds };
  return { secret, stored: { digest: hash.sha256(secret), ...ends } };
}

/** The only time that the secret is seen, by the names that RFC 7591 3.2.1 has for it. */
function showSecret({ say }: Admin, clientId: string, { secret, stored }: NewSecret, json: boolean): void {
  const shown = {
    client_id: clientId,
    client_secret: secret,
    client_secret_expires_at: stored.expiresAtSeconds ?? 0,
  };
  if (json) say(JSON.stringify(shown));
  else for (const [name, value] of Object.entries(shown)) say(`${name} ${value}`);
}

/** AUDIT-D-3: neither a secret nor its digest is in an event. */
function describeChange(
  type: AuditEvent["type"],
  { settings }: Admin,
  clientId: string,
  detail: JsonObject = {},
): AuditEvent {
  return {
    type,
    outcome: "allow",
    reason: "by_operator",
    policy: describePolicy(settings),
    detail: { client_id: clientId, ...detail, ...describeOperator() },
  };
}

const describeEnd = ({ expiresAtSeconds: end }: SecretDigest): JsonObject =>
  end === undefined ? {} : { secret_expires_at: end };

function findProblems({ policy }: Settings, { workload, defaultTarget }: ClientWish): readonly string[] {
  const problems: string[] = [];
  const id = workload === undefined ? undefined : parseSpiffeId(workload);
  if (workload !== undefined && !(id?.ok && isWorkloadId(id.value))) {
    problems.push(`--workload ${word(workload)} is not the SPIFFE ID of a workload`);
  }
  const target = defaultTarget === undefined ? undefined : policy.targets.get(defaultTarget);
  if (defaultTarget !== undefined && (target === undefined || target.partner !== undefined)) {
    problems.push(`--default-target ${word(defaultTarget)} is not the name of a resource server`);
  }
  return problems;
}

export async function createClient(admin: Admin, wish: ClientWish): Promise<number> {
  const problems = findProblems(admin.settings, wish);
  for (const problem of problems) admin.complain(problem);
  if (problems.length > 0) return 1;
  const { method, grantTypes, workload, defaultTarget, json } = wish;
  const atSeconds = nowSeconds();
  // RFC6749-2.2-1, RFC6749-2.2-3: 128 random bits behind letters that begin no URL and no SPIFFE ID.
  const clientId = `${CLIENT_ID_PREFIX}${random.id()}`;
  const secret = makeSecret(atSeconds, wish);
  const add: SecretClient = {
    clientId,
    source: "operator",
    auth: { method, secrets: [secret.stored] },
    grantTypes,
    ...(workload !== undefined && { workload }),
    ...(defaultTarget !== undefined && { defaultTarget }),
  };
  const event = describeChange("client.registered", admin, clientId, {
    method,
    grant_types: [...grantTypes],
    ...(workload !== undefined && { workload }),
    ...(defaultTarget !== undefined && { default_target: defaultTarget }),
    ...describeEnd(secret.stored),
  });
  const recorded = await recordAsAdmin(admin.store, { event, client: { add, atSeconds } });
  if (!recorded) throw new Error("a random id is taken");
  showSecret(admin, clientId, secret, json);
  return 0;
}

export async function rotateSecret(admin: Admin, wish: RotationWish): Promise<number> {
  const { clientId, overlapSeconds, json } = wish;
  const [client] = await admin.store.clients.list(clientId);
  if (client === undefined || client.disabledAtSeconds !== undefined) {
    return complainOfMissing(admin, clientId, "rotate");
  }
  if (client.source === "registration") {
    admin.complain(
      `${word(clientId)} registered itself, and only itself changes its secret: you may disable it.`,
    );
    return 1;
  }
  const atSeconds = nowSeconds();
  const secret = makeSecret(atSeconds, wish);
  const olderEndSeconds = atSeconds + overlapSeconds;
  const event = describeChange("client.updated", admin, clientId, {
    change: "secret_rotated",
    older_secrets_end_at: olderEndSeconds,
    ...describeEnd(secret.stored),
  });
  const { version } = client;
  const change = { rotate: clientId, version, secret: secret.stored, olderEndSeconds, atSeconds };
  const recorded = await recordAsAdmin(admin.store, { event, client: change });
  if (!recorded) {
    // Who came first has handed out a secret, and ours would end it unseen.
    admin.complain(`Another command changed ${word(clientId)} at this moment, and nothing was written.`);
    return 1;
  }
  showSecret(admin, clientId, secret, json);
  return 0;
}

export async function disableClient(admin: Admin, clientId: string): Promise<number> {
  const event = describeChange("client.disabled", admin, clientId);
  const change = { disable: clientId, atSeconds: nowSeconds() };
  const recorded = await recordAsAdmin(admin.store, { event, client: change });
  if (!recorded) return complainOfMissing(admin, clientId, "disable");
  admin.say(
    `Disabled: ${word(clientId)}. It gets no more tokens, and those it has are no longer taken for an exchange.`,
  );
  return 0;
}

function complainOfMissing({ settings, complain }: Admin, clientId: string, verb: string): number {
  const why = settings.clients.has(clientId)
    ? "it is in the configuration file, and changed there"
    : "it is unknown, or disabled";
  complain(`There is no client ${word(clientId)} here to ${verb}: ${why}.`);
  return 1;
}

export async function listClients({ store, say }: Admin): Promise<number> {
  for (const client of await store.clients.list()) say(clientLine(client, nowSeconds()));
  return 0;
}

/** Ends are those of the secrets that still serve; without a secret a client proves itself otherwise. */
export function clientLine(client: StoredClient, atSeconds: number): string {
  const { clientId, method, grantTypes, workload, defaultTarget, secrets } = client;
  const { createdAtSeconds, disabledAtSeconds, registrationClass } = client;
  const ends = secrets
    .map(({ expiresAtSeconds = Number.POSITIVE_INFINITY }) => expiresAtSeconds)
    .filter((end) => end > atSeconds);
  let state = ends.length > 0 || !method.startsWith("client_secret_") ? "in-force" : "expired";
  if (disabledAtSeconds !== undefined) state = "disabled";
  const rest = fields({
    method: word(method),
    class: registrationClass === undefined ? undefined : word(registrationClass),
    "grant-type": words(grantTypes),
    workload: workload === undefined ? undefined : word(workload),
    target: defaultTarget === undefined ? undefined : word(defaultTarget),
    created: time(createdAtSeconds * 1000),
    "secrets-end": ends.map((end) => (Number.isFinite(end) ? time(end * 1000) : "never")).join(","),
    disabled: disabledAtSeconds === undefined ? undefined : time(disabledAtSeconds * 1000),
  });
  return `${word(clientId)} ${state} ${rest}`;
}
