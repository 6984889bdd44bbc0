/**
 * The drafts of the field: which revision the register follows, which is the newest that was seen, and which row says why
 * one is not followed. `npm run clauses -- --drafts` prints them.
 */
import type { Clause, Source } from "./register.ts";

/** `pin`: the revision that is followed; without one, the row says why none is. `seen`: the newest that was seen. */
export type Draft = { name: string; pin?: string; seen: string; row: string };

/** When the newest revisions were looked for. */
export const SEEN_ON = "2026-11-28";

export const DRAFTS: readonly Draft[] = [
  { name: "draft-carleton-workload-authz-grant", pin: "02", seen: "02, its opening", row: "CHG-D-3" },
  { name: "draft-ietf-httpbis-rfc6265bis", pin: "22", seen: "22", row: "CHG-D-3" },
  {
    name: "draft-ietf-oauth-client-id-metadata-document",
    pin: "02",
    seen: "03, its opening",
    row: "CHG-D-3",
  },
  { name: "draft-ietf-oauth-deferred-token-response", pin: "01", seen: "01", row: "CHG-D-6" },
  { name: "draft-ietf-oauth-identity-assertion-authz-grant", pin: "04", seen: "05", row: "CHG-D-3" },
  { name: "draft-ietf-oauth-identity-chaining", pin: "17", seen: "17", row: "CHG-D-3" },
  { name: "draft-ietf-oauth-refresh-token-expiration", pin: "03", seen: "03", row: "CHG-D-8" },
  { name: "draft-ietf-oauth-rfc7523bis", pin: "11", seen: "RFC 10070, its opening", row: "CHG-D-3" },
  { name: "draft-ietf-oauth-rfc8725bis", pin: "09", seen: "10", row: "CHG-D-3" },
  { name: "draft-ietf-oauth-security-topics-update", pin: "02", seen: "03", row: "CHG-D-3" },
  { name: "draft-ietf-oauth-spiffe-client-auth", pin: "02", seen: "02", row: "CHG-D-3" },
  { name: "draft-ietf-oauth-v2-1", pin: "16", seen: "16", row: "CHG-D-3" },
  { name: "draft-araut-oauth-transaction-tokens-for-agents", seen: "02", row: "CHG-D-9" },
  { name: "draft-araut-oauth-transactiontokens-bcp", seen: "00", row: "CHG-D-9" },
  { name: "draft-chen-oauth-agent-revocation", seen: "00", row: "CHG-D-12" },
  { name: "draft-coetzee-oauth-spt-txn-tokens", seen: "03", row: "CHG-D-9" },
  { name: "draft-fletcher-oauth-txn-token-chaining-profile", seen: "00", row: "CHG-D-9" },
  { name: "draft-gazitt-oauth-authzen-token-exchange", seen: "00", row: "CHG-D-13" },
  { name: "draft-ietf-oauth-attestation-based-client-auth", seen: "11", row: "CHG-D-10" },
  { name: "draft-ietf-oauth-rar-metadata-remediation", seen: "00", row: "CHG-D-14" },
  { name: "draft-ietf-oauth-status-list", seen: "21", row: "CHG-D-15" },
  { name: "draft-ietf-oauth-transaction-tokens", pin: "10", seen: "11, its title", row: "CHG-D-3" },
  { name: "draft-ietf-wimse-http-signature", seen: "08", row: "CHG-D-10" },
  { name: "draft-ietf-wimse-workload-creds", seen: "02", row: "CHG-D-10" },
  { name: "draft-ietf-wimse-wpt", seen: "02", row: "CHG-D-10" },
  { name: "draft-liu-mcguinness-oauth-bounded-work", seen: "00", row: "CHG-D-12" },
  { name: "draft-liu-oauth-authorization-evidence", seen: "02", row: "CHG-D-12" },
  { name: "draft-liu-oauth-cross-domain-txn-token", seen: "00", row: "CHG-D-9" },
  { name: "draft-mcguinness-oauth-actor-authority-bounds", seen: "title alone", row: "CHG-D-11" },
  { name: "draft-mcguinness-oauth-actor-profile", seen: "01", row: "CHG-D-11" },
  { name: "draft-mcguinness-oauth-actor-proofs", seen: "01", row: "CHG-D-11" },
  { name: "draft-mcguinness-oauth-actor-receipts", seen: "01", row: "CHG-D-11" },
  { name: "draft-mcguinness-oauth-client-instance-assertion", seen: "its token type alone", row: "CHG-D-11" },
  { name: "draft-mcguinness-oauth-mission", seen: "copy of 22 August 2026", row: "CHG-D-12" },
  { name: "draft-mw-oauth-actor-chain", seen: "02", row: "CHG-D-11" },
  { name: "draft-sato-soos-mjwt", seen: "title alone", row: "CHG-D-12" },
  { name: "draft-tulshi-oauth-transactional-access-tokens", seen: "00", row: "CHG-D-9" },
  { name: "draft-watts-oauth-agent-revocation-closure", seen: "02", row: "CHG-D-12" },
  { name: "AuthZEN access request and approval profile", seen: "1", row: "AARP-7-1" },
  { name: "AuthZEN access request OAuth profile", seen: "November 2026", row: "AARP-7-1" },
  { name: "AuthZEN token exchange binding", seen: "1", row: "CHG-D-13" },
  { name: "COAZ and COAZ-MCP", seen: "17 July 2026", row: "COAZ-T-1" },
  { name: "CAEP interoperability profile", seen: "01, July 2026", row: "CAEPI-2.3-1" },
];

/** The names of drafts in a text, each with its revision. */
const named = (text: string) => [...text.matchAll(/\b(draft-[a-z0-9-]+?)-(\d\d)\b/g)];

/** What of the table is not so: a revision that code or register name and it does not, a row that gives no reason. */
export function findDraftProblems(
  clauses: readonly Clause[],
  sources: readonly Source[],
  drafts: readonly Draft[] = DRAFTS,
): string[] {
  const byName = new Map(drafts.map((draft) => [draft.name, draft]));
  const byId = new Map(clauses.map((clause) => [clause.id, clause]));
  const unknown = sources.flatMap(({ file, text }) =>
    named(text).flatMap(([whole, name = "", revision]) => {
      const draft = byName.get(name);
      if (draft === undefined) return [`${file}: ${whole} is not in the list of drafts`];
      const isPin = draft.pin === undefined || draft.pin === revision;
      return isPin ? [] : [`${file}: names ${whole}, but the list of drafts follows ${draft.pin}`];
    }),
  );
  const unexplained = drafts.flatMap(({ name, pin, row }) => {
    const clause = byId.get(row);
    if (clause === undefined) return [`${name}: ${row} is not in the register`];
    const isReason = pin !== undefined || clause.status === "not-offered" || clause.status === "exception";
    return isReason ? [] : [`${name}: is not followed, but ${row} is ${clause.status}`];
  });
  return [...new Set([...unknown, ...unexplained])];
}
