/** What is the same on both databases: all but the journal's writes, the audit trail and the names of instances. */
import { clientRows } from "./clients.ts";
import { consentRows } from "./consents.ts";
import type { Engine } from "./engine.ts";
import { familyRows } from "./families.ts";
import { jobRows } from "./jobs.ts";
import { keyRows, policyRows, polledRows, restoredMark } from "./kept-rows.ts";
import { pendingConsents } from "./pending-consents.ts";
import { recheckRows, subjectClaimsRows, subjectEmailRows } from "./rechecks.ts";
import { shortLivedRows } from "./short-lived.ts";
import { signalRows } from "./signals.ts";
import { type FindTokens, tokenRows } from "./token-facts.ts";

/** `expired` finds short-lived rows, where the database needs another condition. */
export function sharedRows(engine: Engine, findTokens: FindTokens, expired?: string) {
  const { token, endings } = tokenRows(engine, findTokens);
  const { port, standing } = consentRows(engine);
  const subjectClaims = subjectClaimsRows(engine);
  return {
    facts: { token, consents: standing, claims: subjectClaims.find },
    consents: port,
    endings,
    ...clientRows(engine),
    shortLived: shortLivedRows(engine, expired),
    families: familyRows(engine),
    jobs: jobRows(engine),
    pendingConsents: pendingConsents(engine),
    rechecks: recheckRows(engine),
    subjectEmails: subjectEmailRows(engine),
    subjectClaims,
    signals: signalRows(engine),
    restored: restoredMark(engine),
    keys: keyRows(engine),
    polled: polledRows(engine),
    policies: policyRows(engine),
  };
}
