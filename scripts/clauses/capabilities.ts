/** What is built and what is not, as the reasons of exceptions and the rows that wait in ledgers depend on it. */
import type { Clause } from "./register.ts";

/**
 * The capabilities that are not built, by the documents of their clauses: rows of these may wait in a ledger. A document
 * leaves this list with its first tested clause.
 */
export const NOT_BUILT: ReadonlyMap<string, string> = new Map([["RFC8936", "polled signals"]]);

/** The words by which the reason of a row says that a capability is missing. */
const WORDS: ReadonlyMap<string, readonly string[]> = new Map([
  ["sign-in", ["no user", "no users", "users do not", "no sign-in", "how the user signed in"]],
  ["a page", ["no browser", "no browsers", "no cookies", "no pages", "no such pages", "there is no page"]],
  [
    "the authorization endpoint",
    ["authorization endpoint is not offered", "grants for machines", "no codes"],
  ],
  ["a redirect", ["no redirect is", "no redirects", "no page, link or redirect", "no form data"]],
  ["a public client", ["public clients get no", "no public client", "no public clients"]],
  ["the refresh token", ["no refresh token", "no refresh tokens"]],
  ["DPoP", ["no DPoP", "none is bound", "not bound to a key", "no bound tokens"]],
  ["a pushed request", ["no pushed requests", "/par is not offered"]],
  ["revocation", ["no revocation", "cannot be revoked"]],
  ["registration", ["registration is not offered", "no metadata documents"]],
  ["a grant across domains", ["no grants for partners", "no identity assertions are taken"]],
  ["authorization details", ["`authorization_details` is not offered"]],
  ["agents of other platforms", ["workload federation is not offered"]],
  ["a transaction token", ["transaction tokens are not offered"]],
  ["signals", ["no security event tokens", "security events of the option"]],
]);

/** The words of a plan, which is no reason: such a row is planned, for a capability. */
const PLANS: readonly string[] = ["yet", "not built", "for now", "so far", "later"];

/** Rows that are tested of what is listed as not built, and rows whose reason has stopped being true, or was none; the row of a capability that was built is looked at again. */
export function findStaleReasons(
  clauses: readonly Clause[],
  words = WORDS,
  notBuilt: ReadonlyMap<string, string> = NOT_BUILT,
): string[] {
  const waiting = new Set(notBuilt.values());
  const built = [...words].filter(([capability]) => !waiting.has(capability));
  const wrong = [
    ...built.map(([capability, phrases]) => ({ phrases: anyOf(phrases), why: `but there is ${capability}` })),
    { phrases: anyOf(PLANS), why: "which is a plan and no reason" },
  ];
  const listed = clauses.flatMap(({ id, status }) => {
    const capability = status === "tested" ? notBuilt.get(id.replace(/-.*/, "")) : undefined;
    return capability === undefined ? [] : [`${id}: is tested, but ${capability} are listed as not built`];
  });
  const stale = clauses
    .filter(({ status }) => status === "exception" || status === "not-offered")
    .flatMap(({ id, note = "" }) =>
      wrong.flatMap(({ phrases, why }) => {
        const said = phrases.exec(note)?.[0];
        return said === undefined ? [] : [`${id}: says "${said}", ${why}`];
      }),
    );
  return [...listed, ...stale];
}

const anyOf = (phrases: readonly string[]): RegExp =>
  new RegExp(`(?<![\\w-])(?:${phrases.map(RegExp.escape).join("|")})(?![\\w-])`, "i");
