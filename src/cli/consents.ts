/** `mandate consents`: consent records (PROD-2.6-3) that the operator keeps for subjects who consented elsewhere. */
import { clock } from "../adapters/clock.ts";
import { random } from "../adapters/crypto/random.ts";
import type { AuditEvent } from "../audit/event.ts";
import { jobOver } from "../flows/jobs.ts";
import { consentJson } from "../flows/record-json.ts";
import { EXIT } from "../limits/process.ts";
import type { Consent } from "../policy/access.ts";
import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import { parseScope } from "../spec/rfc6749.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { isWorkloadName } from "../spec/workload-grant.ts";
import { operatorEvent, recordAsAdmin } from "./admin-log.ts";
import type { Admin, Command } from "./command.ts";
import { onStore } from "./command.ts";
import type { CommandArguments } from "./options.ts";
import { readWhole } from "./options.ts";
import { consentLine, jsonLine, titlesOf, word } from "./text.ts";

export function consentsCommand(given: CommandArguments): Result<Command, string> {
  const [issuer, subject] = [given.one("issuer"), given.one("subject")];
  const [id = ""] = given.args;
  switch (given.form) {
    case "add": {
      const consent = readConsent(given);
      return consent.ok ? onStore(given, (admin) => addConsent(admin, consent.value)) : consent;
    }
    case "withdraw":
      return onStore(given, (admin) => withdrawStored(admin, id));
    default:
      return onStore(given, (admin) => listStored(admin, { issuer, subject, json: given.has("json") }));
  }
}

type NewConsent = {
  issuer: string;
  subject: string;
  actor: string;
  targets: readonly string[];
  scope: string;
  expiresInSeconds?: number;
};

function readConsent(given: CommandArguments): Result<NewConsent, string> {
  const lifetime = readWhole(given, "expires", "of seconds");
  if (!lifetime.ok) return lifetime;
  const [issuer = "", subject = "", actor = "", scope = ""] = ["issuer", "subject", "actor", "scope"].map(
    given.one,
  );
  // PROD-2.6-3: a consent names its actor by workload identifier.
  if (!isWorkloadName(actor)) {
    return err(`--actor ${word(actor)} is neither the SPIFFE ID of a workload nor the name of a platform's`);
  }
  const targets = given.all("target") ?? [];
  return ok(
    defined<NewConsent>({ issuer, subject, actor, targets, scope, expiresInSeconds: lifetime.value }),
  );
}

/** Returns the scopes. A consent that no request could match is refused, because it can only be a typing error. */
function checkConsent(
  { issuer, trustedIssuers, policy }: Settings,
  consent: NewConsent,
): Result<readonly string[], readonly string[]> {
  const problems: string[] = [];
  if (consent.issuer !== issuer && !trustedIssuers.has(consent.issuer)) {
    problems.push(`--issuer ${word(consent.issuer)} is neither in trustedIssuers nor this server's issuer`);
  }
  for (const name of consent.targets) {
    if (!policy.targets.has(name)) problems.push(`--target ${word(name)} is not a name in targets`);
  }
  const scope = parseScope(consent.scope);
  if (!scope.ok) {
    problems.push(`--scope ${word(consent.scope)} is not a list of scopes separated by single spaces`);
  }
  if (problems.length > 0 || !scope.ok) return err(problems);
  return ok(scope.value);
}

async function addConsent({ settings, store, print, printError }: Admin, added: NewConsent): Promise<number> {
  const scopes = checkConsent(settings, added);
  if (!scopes.ok) {
    for (const problem of scopes.error) printError(problem);
    return EXIT.refused;
  }
  const { issuer, subject, actor, expiresInSeconds } = added;
  const targets = [...new Set(added.targets)];
  const id = random.id();
  const expires = expiresInSeconds === undefined ? undefined : clock.nowSeconds() + expiresInSeconds;
  const consent = defined<Consent>({
    id,
    version: 1,
    origin: { iss: issuer, sub: subject },
    actor,
    targets,
    scopes: scopes.value,
    expiresAtSeconds: expires,
  });
  const detail = defined<JsonObject>({
    iss: issuer,
    sub: subject,
    actor,
    targets,
    scope: scopes.value.join(" "),
    expires_at: expires,
  });
  const event = consentEvent(settings, "consent.recorded", id, detail);
  const recorded = await recordAsAdmin(store, { event, consent: { add: consent } });
  if (!recorded) throw new Error("the random id already exists");
  print(id);
  return EXIT.done;
}

function consentEvent(
  settings: Settings,
  type: AuditEvent["type"],
  id: string,
  detail?: JsonObject,
): AuditEvent {
  const event = operatorEvent(settings, type, detail);
  return { ...event, policy: { ...event.policy, consent: id } };
}

async function withdrawStored({ settings, store, print, printError }: Admin, id: string): Promise<number> {
  const withdrawn = await recordAsAdmin(store, {
    event: consentEvent(settings, "consent.withdrawn", id),
    consent: { withdraw: id, atSeconds: clock.nowSeconds() },
  });
  if (!withdrawn) {
    printError(`Consent ${word(id)} is unknown or already withdrawn: see "consents list".`);
    return EXIT.refused;
  }
  print(`Withdrawn: ${word(id)}. Tokens issued under it are no longer accepted for an exchange.`);
  return EXIT.done;
}

async function listStored(
  { settings, store, print }: Admin,
  { issuer, subject, json }: { issuer: string | undefined; subject: string | undefined; json: boolean },
): Promise<number> {
  const origin = issuer === undefined || subject === undefined ? undefined : { iss: issuer, sub: subject };
  for (const consent of await store.consents.list(origin)) {
    const { iss, sub } = consent.origin;
    if (iss !== (issuer ?? iss) || sub !== (subject ?? sub)) continue;
    if (json) print(jsonLine(consentJson(consent)));
    else {
      const { jobId, jobIssuer } = consent;
      // JOB-D-6: a consent of a job counts as long as the exchange takes the job.
      const isOurs = jobId !== undefined && jobIssuer === undefined;
      const over = isOurs ? jobOver({ clock }, await store.jobs.find(jobId)) : undefined;
      print(consentLine(consent, clock.nowSeconds(), titlesOf(settings), over));
    }
  }
  return EXIT.done;
}
