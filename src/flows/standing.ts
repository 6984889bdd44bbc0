/**
 * Whether a token of ours still stands: not expired, reached by no ending, and within every limit in force, with each
 * token behind it. The one place that decides that; no cache answers for it.
 */
import type { TokenReason } from "../audit/reasons.ts";
import type { ClaimsWord } from "../policy/claims.ts";
import type { Ports } from "../ports.ts";
import type { TokenFacts } from "../records.ts";
import { type Awaitable, allOf, defined, err, ok, type Result, whenReady } from "../result.ts";
import type { Client, Settings } from "../settings/settings.ts";
import { type CurrentFacts, stillCovers } from "./still-covers.ts";
import { demandsOf } from "./subject-claims.ts";

export type StandingPorts = Pick<Ports, "facts" | "clients" | "settings">;
type Standing = Result<TokenFacts, TokenReason>;

export function standing(ports: StandingPorts, jti: string, nowSeconds: number): Awaitable<Standing> {
  return whenReady(ports.facts.token(jti), (facts) => {
    // AUDIT-D-1: every issued token has a row, so a token without one was made by another holder of our key.
    if (facts === undefined) return err("token_unknown");
    // RFC7662-2.2-7: an ended token is looked at like one that stands, so that time does not tell them apart.
    return whenReady(within(ports, facts, nowSeconds), (judged) =>
      facts.ended === undefined ? judged : err("token_revoked"),
    );
  });
}

/** The same check without endings. */
export function within(ports: StandingPorts, found: TokenFacts, nowSeconds: number): Awaitable<Standing> {
  const records = [found.record, ...found.ancestors];
  const { rules, claims: wanted } = ports.settings().policy;
  const demands = wanted.size > 0 && records.some(({ ruleId }) => demandsOf(rules.get(ruleId)) !== undefined);
  const word = demands ? ports.facts.claims(found.record.origin) : undefined;
  return whenReady(allOf(records.map(({ clientId }) => ports.clients.find(clientId))), (clients) =>
    whenReady(word, (claims) => judge(ports.settings(), found, clients, claims, nowSeconds)),
  );
}

/** `clients` are those of the token and of the tokens behind it. */
function judge(
  settings: Settings,
  found: TokenFacts,
  clients: readonly (Client | undefined)[],
  claims: ClaimsWord | undefined,
  nowSeconds: number,
): Standing {
  const { record, ancestors, consents, job } = found;
  const records = [record, ...ancestors];
  if (record.expiresAtSeconds <= nowSeconds) return err("jwt_expired");
  // JOB-D-8: a job without a row was removed, or never was; what is behind a token of a job is of the same one, or of none.
  const isOfOurs = record.jobId !== undefined && record.jobIssuer === undefined;
  if (isOfOurs && job === undefined) return err("token_job_gone");
  // AUDIT-D-5: a token whose ancestor has no row cannot be judged.
  if (ancestors.length < record.ancestors.length) return err("token_unknown");
  for (const [index, one] of records.entries()) {
    const client = clients[index];
    const consent = consents.find(({ id }) => id === one.consentId);
    const facts = defined<CurrentFacts>({ client, consent, claims, parent: records[index + 1] });
    const covered = stillCovers(one, facts, settings, nowSeconds);
    if (!covered.ok) return covered;
  }
  return ok(found);
}
