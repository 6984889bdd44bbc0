/** Consent records (product document 2.6), kept by the operator for subjects who gave their consent elsewhere. */
import { clock, random } from "../../src/adapters/crypto/system.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import type { Consent } from "../../src/policy/ask.ts";
import type { Result } from "../../src/result.ts";
import { err, ok } from "../../src/result.ts";
import type { Settings } from "../../src/settings/settings.ts";
import { parseScope } from "../../src/spec/rfc6749.ts";
import { isWorkloadId, parseSpiffeId } from "../../src/spec/spiffe/id.ts";
import type { Admin } from "./record.ts";
import { describeOperator, describePolicy, recordAsAdmin } from "./record.ts";
import { consentLine, word } from "./text.ts";

export type ConsentWish = {
  issuer: string;
  subject: string;
  actor: string;
  targets: readonly string[];
  scope: string;
  expiresInSeconds?: number;
};

const nowSeconds = (): number => Math.floor(clock.nowMs() / 1000);

/** A consent that nothing could ever match is a slip of the keyboard. */
function checkWish(
  { issuer, trustedIssuers, policy }: Settings,
  wish: ConsentWish,
): Result<readonly string[], readonly string[]> {
  const problems: string[] = [];
  if (wish.issuer !== issuer && !trustedIssuers.has(wish.issuer)) {
    problems.push(`--issuer ${word(wish.issuer)} is neither a trusted issuer nor this server`);
  }
  // PROD-2.6-3: actors go by their workload identifiers.
  const actor = parseSpiffeId(wish.actor);
  if (!actor.ok || !isWorkloadId(actor.value)) {
    problems.push(`--actor ${word(wish.actor)} is not the SPIFFE ID of a workload`);
  }
  for (const name of wish.targets) {
    if (!policy.targets.has(name)) problems.push(`--target ${word(name)} is not the name of a target`);
  }
  const scope = parseScope(wish.scope);
  if (!scope.ok) problems.push(`--scope ${word(wish.scope)} is not a list of scopes with single spaces`);
  if (problems.length > 0 || !scope.ok) return err(problems);
  return ok(scope.value);
}

export async function addConsent(
  { settings, store, say, complain }: Admin,
  wish: ConsentWish,
): Promise<number> {
  const scopes = checkWish(settings, wish);
  if (!scopes.ok) {
    for (const problem of scopes.error) complain(problem);
    return 1;
  }
  const { issuer, subject, actor, expiresInSeconds } = wish;
  const targets = [...new Set(wish.targets)];
  const id = random.id();
  const expires = expiresInSeconds === undefined ? undefined : nowSeconds() + expiresInSeconds;
  const consent: Consent = {
    id,
    version: 1,
    origin: { iss: issuer, sub: subject },
    actor,
    targets,
    scopes: scopes.value,
    ...(expires !== undefined && { expiresAtSeconds: expires }),
  };
  const event: AuditEvent = {
    type: "consent.recorded",
    outcome: "allow",
    reason: "by_operator",
    policy: { ...describePolicy(settings), consent: id },
    detail: {
      iss: issuer,
      sub: subject,
      actor,
      targets,
      scope: scopes.value.join(" "),
      ...(expires !== undefined && { expires_at: expires }),
      ...describeOperator(),
    },
  };
  const recorded = await recordAsAdmin(store, { event, consent: { add: consent } });
  if (!recorded) throw new Error("a random id is taken");
  say(id);
  return 0;
}

export async function withdrawConsent(
  { settings, store, say, complain }: Admin,
  id: string,
): Promise<number> {
  const event: AuditEvent = {
    type: "consent.withdrawn",
    outcome: "allow",
    reason: "by_operator",
    policy: { ...describePolicy(settings), consent: id },
    detail: describeOperator(),
  };
  const withdrawn = await recordAsAdmin(store, { event, consent: { withdraw: id, atSeconds: nowSeconds() } });
  if (!withdrawn) {
    complain(`There is no consent ${word(id)} to withdraw: it is unknown, or withdrawn already.`);
    return 1;
  }
  say(`Withdrawn: ${word(id)}. Tokens that were issued under it are no longer taken for an exchange.`);
  return 0;
}

export async function listConsents(
  { store, say }: Admin,
  { issuer, subject }: { issuer?: string | undefined; subject?: string | undefined },
): Promise<number> {
  const origin = issuer === undefined || subject === undefined ? undefined : { iss: issuer, sub: subject };
  for (const consent of await store.consents.list(origin)) {
    const { iss, sub } = consent.origin;
    if (iss === (issuer ?? iss) && sub === (subject ?? sub)) say(consentLine(consent, nowSeconds()));
  }
  return 0;
}
