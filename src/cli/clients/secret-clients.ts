/** `mandate clients create`, `rotate`, `disable` (RFC 6749 2.2, 2.3.1): each change and its event are one step. */
import { randomBytes } from "node:crypto";
import { clock } from "../../adapters/clock.ts";
import { hash } from "../../adapters/crypto/hash.ts";
import { random } from "../../adapters/crypto/random.ts";
import type { SecretClient } from "../../adapters/store/store.ts";
import type { AuditEvent } from "../../audit/event.ts";
import { EXIT } from "../../limits/process.ts";
import { issuedTo } from "../../policy/products.ts";
import { defined } from "../../result.ts";
import type { SecretDigest, Settings } from "../../settings/settings.ts";
import { CLIENT_ID_PREFIX } from "../../spec/rfc7591.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { isWorkloadId, parseSpiffeId } from "../../spec/spiffe/id.ts";
import { operatorEvent, recordAsAdmin } from "../admin-log.ts";
import type { Admin } from "../command.ts";
import { word } from "../text.ts";

type SecretOptions = { expiresInSeconds?: number; json: boolean };

export type NewClient = SecretOptions & {
  method: SecretClient["auth"]["method"];
  grantTypes: readonly string[];
  workload?: string;
  defaultTarget?: string;
};

export type Rotation = SecretOptions & { clientId: string; overlapSeconds: number };

type NewSecret = { secret: string; stored: SecretDigest };

function makeSecret(atSeconds: number, { expiresInSeconds }: SecretOptions): NewSecret {
  // RFC6749-10.10-3: the secret has 256 random bits.
  const secret = randomBytes(32).toString("base64url");
  const expiresAtSeconds = expiresInSeconds === undefined ? undefined : atSeconds + expiresInSeconds;
  return { secret, stored: defined<SecretDigest>({ digest: hash.sha256(secret), expiresAtSeconds }) };
}

/** Prints the secret, which is not stored and cannot be printed again, under the names of RFC 7591 3.2.1. */
function showSecret({ print }: Admin, clientId: string, { secret, stored }: NewSecret, json: boolean): void {
  const shown = {
    client_id: clientId,
    client_secret: secret,
    client_secret_expires_at: stored.expiresAtSeconds ?? 0,
  };
  if (json) print(JSON.stringify(shown));
  else for (const [name, value] of Object.entries(shown)) print(`${name} ${value}`);
}

/** AUDIT-D-3: an event contains neither a secret nor its digest. */
const describeChange = (
  type: AuditEvent["type"],
  { settings }: Admin,
  clientId: string,
  detail?: JsonObject,
) => operatorEvent(settings, type, { client_id: clientId, ...detail });

function findProblems({ policy }: Settings, { workload, defaultTarget }: NewClient): readonly string[] {
  const problems: string[] = [];
  const id = workload === undefined ? undefined : parseSpiffeId(workload);
  if (workload !== undefined && !(id?.ok && isWorkloadId(id.value))) {
    problems.push(`--workload ${word(workload)} is not the SPIFFE ID of a workload`);
  }
  const target = defaultTarget === undefined ? undefined : policy.targets.get(defaultTarget);
  if (defaultTarget !== undefined && (target === undefined || issuedTo(target) !== "access_token")) {
    problems.push(`--default-target ${word(defaultTarget)} is not the name of a resource server in targets`);
  }
  return problems;
}

export async function createClient(admin: Admin, client: NewClient): Promise<number> {
  const problems = findProblems(admin.settings, client);
  for (const problem of problems) admin.printError(problem);
  if (problems.length > 0) return EXIT.refused;
  const { method, grantTypes, workload, defaultTarget, json } = client;
  const atSeconds = clock.nowSeconds();
  // RFC6749-2.2-1, RFC6749-2.2-3: a `client_id` has 128 random bits after a prefix that no URL and no SPIFFE ID begins
  // with.
  const clientId = `${CLIENT_ID_PREFIX}${random.id()}`;
  const secret = makeSecret(atSeconds, client);
  const add = defined<SecretClient>({
    clientId,
    source: "operator",
    auth: { method, secrets: [secret.stored] },
    grantTypes,
    workload,
    defaultTarget,
  });
  const detail = defined<JsonObject>({
    method,
    grant_types: [...grantTypes],
    workload,
    default_target: defaultTarget,
    secret_expires_at: secret.stored.expiresAtSeconds,
  });
  const event = describeChange("client.registered", admin, clientId, detail);
  const recorded = await recordAsAdmin(admin.store, { event, client: { add, atSeconds } });
  if (!recorded) throw new Error("the random id already exists");
  showSecret(admin, clientId, secret, json);
  return EXIT.done;
}

export async function rotateSecret(admin: Admin, rotation: Rotation): Promise<number> {
  const { clientId, overlapSeconds, json } = rotation;
  const [client] = await admin.store.clients.list(clientId);
  if (client === undefined || client.disabledAtSeconds !== undefined) {
    return reportMissing(admin, clientId, "rotate");
  }
  if (client.source === "registration") {
    admin.printError(
      `Client ${word(clientId)} registered itself, so only it can change its secret; you can disable it.`,
    );
    return EXIT.refused;
  }
  const atSeconds = clock.nowSeconds();
  const secret = makeSecret(atSeconds, rotation);
  const olderEndSeconds = atSeconds + overlapSeconds;
  const detail = defined<JsonObject>({
    change: "secret_rotated",
    older_secrets_end_at: olderEndSeconds,
    secret_expires_at: secret.stored.expiresAtSeconds,
  });
  const event = describeChange("client.updated", admin, clientId, detail);
  const { version } = client;
  const change = { rotate: clientId, version, secret: secret.stored, olderEndSeconds, atSeconds };
  const recorded = await recordAsAdmin(admin.store, { event, client: change });
  if (!recorded) {
    // The change is refused, because a concurrent rotation has printed a secret that ours would end early.
    admin.printError(
      `Another command changed ${word(clientId)} meanwhile, and nothing was written: try again.`,
    );
    return EXIT.refused;
  }
  showSecret(admin, clientId, secret, json);
  return EXIT.done;
}

export async function disableClient(admin: Admin, clientId: string): Promise<number> {
  const event = describeChange("client.disabled", admin, clientId);
  const change = { disable: clientId, atSeconds: clock.nowSeconds() };
  const recorded = await recordAsAdmin(admin.store, { event, client: change });
  if (!recorded) return reportMissing(admin, clientId, "disable");
  admin.print(
    `Disabled: ${word(clientId)}. It gets no more tokens, and its tokens are no longer accepted for an exchange.`,
  );
  return EXIT.done;
}

function reportMissing({ settings, printError }: Admin, clientId: string, verb: string): number {
  const reason = settings.clients.has(clientId)
    ? "it is defined in the configuration file; change it there"
    : 'it is unknown or disabled; see "clients list"';
  printError(`Cannot ${verb} client ${word(clientId)}: ${reason}.`);
  return EXIT.refused;
}
