/** `mandate consents`: consent records (PROD-2.6-3) that the operator keeps for subjects who consented elsewhere. */
import { clock } from "../adapters/clock.ts";
import { hash } from "../adapters/crypto/hash.ts";
import { random } from "../adapters/crypto/random.ts";
import type { AuditEvent } from "../audit/event.ts";
import { REASONS } from "../audit/reasons.ts";
import { type ChangeFailure, consentState, putConsent } from "../flows/consents.ts";
import { consentJson } from "../flows/record-json.ts";
import { EXIT } from "../limits/process.ts";
import { defined, err, ok, type Result } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { isWorkloadName } from "../spec/workload-grant.ts";
import { byOperator, operatorEvent, recordAsAdmin } from "./admin-log.ts";
import { type Admin, type Command, onStore } from "./command.ts";
import { type CommandArguments, readWhole } from "./options.ts";
import { consentLine, jsonLine, titlesOf, word } from "./text.ts";
import { endingPortsOf } from "./tokens.ts";

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

/** PROD-2.6-4: by the flow of the API, so that no consent is recorded here that is refused there. */
async function addConsent(admin: Admin, added: NewConsent): Promise<number> {
  const { settings, store, print, printError } = admin;
  const { issuer: iss, subject: sub, actor, targets, scope, expiresInSeconds } = added;
  const json = defined<JsonObject>({
    subject: { iss, sub },
    actor,
    targets: [...targets],
    scope,
    expires_at: expiresInSeconds === undefined ? undefined : clock.nowSeconds() + expiresInSeconds,
  });
  const ports = { ...endingPortsOf(admin), random, consents: store.consents };
  const { detail: says } = byOperator(settings);
  const put = { id: random.id(), json, expected: "none" as const };
  const recorded = await putConsent(ports, { by: "operator", says }, undefined, put);
  if (recorded.ok) {
    print(recorded.value.consent.id);
    return EXIT.done;
  }
  printError(problemOf(settings, added, recorded.error.kind));
  return EXIT.refused;
}

/** A consent that no request could match is refused, because it can only be a typing error. */
function problemOf({ policy }: Settings, added: NewConsent, kind: ChangeFailure["kind"]): string {
  const { issuer, targets, scope } = added;
  switch (kind) {
    case "subject_refused":
      return `--issuer ${word(issuer)} is neither in trustedIssuers nor this server's issuer`;
    case "consent_target_unknown": {
      const unknown = targets.filter((name) => !policy.targets.has(name));
      return `--target ${unknown.map(word).join(", ")} is not a name in targets`;
    }
    case "consent_scope_malformed":
      return `--scope ${word(scope)} is not a list of scopes separated by single spaces`;
    case "consent_scope_unknown": {
      const known = new Set(targets.flatMap((name) => policy.targets.get(name)?.scopes ?? []));
      const unknown = scope.split(" ").filter((one) => !known.has(one));
      return `--scope ${unknown.map(word).join(", ")} is a scope of none of these targets`;
    }
    default:
      return `the consent was not recorded: ${REASONS[kind]}`;
  }
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
  admin: Admin,
  { issuer, subject, json }: { issuer: string | undefined; subject: string | undefined; json: boolean },
): Promise<number> {
  const { settings, store, print } = admin;
  const origin = issuer === undefined || subject === undefined ? undefined : { iss: issuer, sub: subject };
  const ports = { clock, hash, settings: () => settings, jobs: store.jobs, endings: store.endings };
  for (const consent of await store.consents.list(origin)) {
    const { iss, sub } = consent.origin;
    if (iss !== (issuer ?? iss) || sub !== (subject ?? sub)) continue;
    const state = await consentState(ports, consent);
    print(json ? jsonLine(consentJson(consent, state)) : consentLine(consent, state, titlesOf(settings)));
  }
  return EXIT.done;
}
