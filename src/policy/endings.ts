/**
 * Endings: the names under which an issued token can be ended, and the record that ends what carries one of them. A
 * token is never changed by an ending. It carries the keys of its own names and of the tokens behind it, each with the
 * time since which what it names exists, and is ended when one of them is on record with a later cut-off.
 */

import { REFRESH_DAYS_MAX } from "../limits/people.ts";
import {
  ACCESS_TOKEN_SECONDS_MAX,
  DISABLED_KEPT_SECONDS,
  ENDING_KEPT_SECONDS,
  ENDING_REACH_MS,
} from "../limits/tokens.ts";
import { parseSpiffeId } from "../spec/spiffe/id.ts";
import { joinedName } from "../spec/workload-grant.ts";
import type { Origin } from "./access.ts";

/** Selects what is ended: one thing, with all that was issued to it, for it, through it or below it. */
export type EndingSelector =
  | { by: "token"; jti: string }
  /**
   * The subject at the issuer that first vouched for it; `iss` is ours for a client that acted for itself. All that it
   * has ends: tokens, refresh tokens, sessions, links to ask it; what began up to a time in milliseconds, or up to now;
   * of one that is disabled, whatever begins until it is enabled again.
   */
  | { by: "subject"; iss: string; sub: string; upToMs?: number; disabled?: true }
  /** One sign-in of a user, as their provider names it. */
  | { by: "sign_in"; iss: string; sid: string }
  /** What came of a token of a trusted issuer that takes back single ones, such as a grant that was redeemed here. */
  | { by: "foreign_token"; iss: string; jti: string }
  /** A workload in any hop that this server authenticated, by its SPIFFE ID or as a platform's. */
  | { by: "actor"; spiffeId: string }
  | { by: "client"; clientId: string }
  /** Every workload of the trust domain. */
  | { by: "trust_domain"; name: string }
  /** Every subject of the issuer. */
  | { by: "issuer"; issuer: string }
  | { by: "rule"; id: string }
  | { by: "consent"; id: string }
  /** What a user gave to a client by one click: the refresh tokens, and what was issued for them. */
  | { by: "grant"; id: string }
  /** PCL-D-9: what rests on these demands on the claims of a subject, by their digest. */
  | { by: "claims"; iss: string; sub: string; demands: string }
  /** What every user gave by a click, as after a backup was restored. */
  | { by: "every_grant" }
  /** JOB-D-12: what was issued for the job; `iss` is the server whose job it is. */
  | { by: "job"; iss: string; id: string }
  /** What was signed by this key of ours. */
  | { by: "key"; kid: string }
  /** What was issued up to a time in milliseconds, or up to now if no time is given. */
  | { by: "everything"; upToMs?: number };

/** A name under which a token can be ended, as a digest, and since when what it names exists. */
export type EndingKey = { key: string; sinceMs: number };

export type Ending = {
  key: string;
  /** The ending reaches what exists since then or earlier. */
  cutOffMs: number;
  atMs: number;
  /** The time from which nothing is left that the key can end, so that the record may be removed. */
  expiresAtSeconds: number;
};

/** The SHA-256 of a text, in base64url; `once` says that the text hardly comes again, so that it need not be kept. */
export type TextDigest = (text: string, once?: boolean) => string;

/** A key has 128 bits of the digest, because the row of a token holds many keys, and names may be long. */
const KEY_CHARS = 22;

export const selectorKey = (sha256: TextDigest, selector: EndingSelector): string =>
  sha256(JSON.stringify(nameOf(selector)), selector.by === "token").slice(0, KEY_CHARS);

function nameOf(selector: EndingSelector): readonly string[] {
  const { by } = selector;
  switch (by) {
    case "token":
      return [by, selector.jti];
    case "subject":
      return [by, selector.iss, selector.sub];
    case "sign_in":
      return [by, selector.iss, selector.sid];
    case "foreign_token":
      return [by, selector.iss, selector.jti];
    case "claims":
      return [by, selector.iss, selector.sub, selector.demands];
    case "actor":
      return [by, selector.spiffeId];
    case "client":
      return [by, selector.clientId];
    case "trust_domain":
      return [by, selector.name];
    case "issuer":
      return [by, selector.issuer];
    case "rule":
    case "consent":
    case "grant":
      return [by, selector.id];
    case "job":
      return [by, selector.iss, selector.id];
    case "key":
      return [by, selector.kid];
    case "everything":
    case "every_grant":
      return [by];
  }
}

// --- what a token carries ---------------------------------------------------------------------------------------

/** The names of an issued token by which it can be ended. */
export type Endable = {
  jti: string;
  clientId: string;
  workload?: string;
  origin: Origin;
  ruleId: string;
  consentId?: string;
  /** The token of ours that was its actor token. */
  actorJti?: string;
  /** The keys of the job that it was issued for. */
  jobKeys?: readonly EndingKey[];
  /** PCL-D-9: what was demanded of the claims of its subject, since they were true. */
  claimsKeys?: readonly EndingKey[];
  /** The key of ours that signs it. */
  kid?: string;
  /** The workloads of platforms that proved a party, each with the time of the token that did. */
  platforms?: readonly { id: string; origin: Origin; issuedAtSeconds: number }[];
  issuedAtSeconds: number;
};

/**
 * The root of a token: a token of ours, by its keys, or a foreign one, by the time at which it was issued, by its name
 * where its issuer takes back single tokens, and by the session that it belongs to.
 */
export type Root = { keys: readonly EndingKey[] } | ForeignRoot;

/** `email`: the address by which security events of the issuer may name the subject. */
export type ForeignRoot = {
  issuedAtSeconds: number;
  token?: { iss: string; jti: string };
  session?: { iss: string; sid: string };
  email?: string;
};

/**
 * The keys of a token: its own since it was written, the subject's since the foreign token was issued, and those of the
 * tokens behind it as they were, so that one look-up tells whether it is ended, whatever the depth. A token without a
 * root is its own root.
 */
export function endingKeys(sha256: TextDigest, issued: Endable, root: Root = issued): readonly EndingKey[] {
  const writtenMs = issued.issuedAtSeconds * 1000;
  const keys: EndingKey[] = [];
  const carry = (key: string, sinceMs: number): void => {
    for (const entry of keys) {
      if (entry.key !== key) continue;
      entry.sinceMs = Math.min(entry.sinceMs, sinceMs);
      return;
    }
    keys.push({ key, sinceMs });
  };
  const add = (selector: EndingSelector, sinceMs: number): void =>
    carry(selectorKey(sha256, selector), sinceMs);

  const { jti, clientId, workload, ruleId, consentId, actorJti, kid, origin } = issued;
  add({ by: "token", jti }, writtenMs);
  if (actorJti !== undefined) add({ by: "token", jti: actorJti }, writtenMs);
  add({ by: "client", clientId }, writtenMs);
  add({ by: "rule", id: ruleId }, writtenMs);
  if (consentId !== undefined) add({ by: "consent", id: consentId }, writtenMs);
  if (kid !== undefined) add({ by: "key", kid }, writtenMs);
  // POLICY-D-4: a hop that was only told is no actor of ours; one that this server authenticated is that of a token behind.
  const id = workload === undefined ? undefined : parseSpiffeId(workload);
  if (id?.ok) {
    add({ by: "actor", spiffeId: id.value.id }, writtenMs);
    add({ by: "trust_domain", name: id.value.trustDomain }, writtenMs);
  }
  // PLAT-D-16: a workload of a platform is ended by its name here, by its issuer, and as a subject of that.
  for (const { id: name, origin: there, issuedAtSeconds } of issued.platforms ?? []) {
    const sinceMs = Math.min(issuedAtSeconds, issued.issuedAtSeconds) * 1000;
    add({ by: "actor", spiffeId: name }, writtenMs);
    add({ by: "issuer", issuer: there.iss }, sinceMs);
    add({ by: "subject", ...there }, sinceMs);
    // FEDC-D-11: and where its name is made of claims, by these.
    add({ by: "subject", ...there, sub: joinedName(name) ?? there.sub }, sinceMs);
  }
  const behind =
    "keys" in root
      ? root.keys
      : foreignKeys(sha256, origin, Math.min(root.issuedAtSeconds, issued.issuedAtSeconds));
  for (const { key, sinceMs } of behind) carry(key, sinceMs);
  for (const { key, sinceMs } of issued.jobKeys ?? []) carry(key, sinceMs);
  for (const { key, sinceMs } of issued.claimsKeys ?? []) carry(key, sinceMs);
  if ("token" in root && root.token !== undefined) add({ by: "foreign_token", ...root.token }, writtenMs);
  if ("session" in root && root.session !== undefined) add({ by: "sign_in", ...root.session }, writtenMs);
  return keys;
}

/** The keys of a token of another issuer, which is not on record here; an ending of its subject refuses it too. */
export const foreignKeys = (
  sha256: TextDigest,
  origin: Origin,
  issuedAtSeconds: number,
): readonly EndingKey[] => {
  const selectors: readonly EndingSelector[] = [
    { by: "everything" },
    { by: "subject", ...origin },
    { by: "issuer", issuer: origin.iss },
  ];
  const sinceMs = issuedAtSeconds * 1000;
  return selectors.map((one) => ({ key: selectorKey(sha256, one), sinceMs }));
};

/** A sign-in of a user: `sid` is the name of their session at the provider, if it told one. */
type UserSignIn = { origin: Origin; sid?: string };

/** The digest of a user, by which what they hold is found. */
export const userDigest = (sha256: TextDigest, user: Origin | undefined): string =>
  sha256(JSON.stringify([user?.iss, user?.sub]));

/** PCL-D-12: the address that the latest token of an issuer named for its subject, without the address. */
export type SubjectEmail = {
  origin: Origin;
  email: string;
  issuedAtSeconds: number;
  /** The time from which the subject has nothing here that the token led to. */
  expiresAtSeconds: number;
};

/** Of the issuer too, which speaks of its own subjects alone. */
export const emailDigest = (sha256: TextDigest, iss: string, email: string): string =>
  sha256(JSON.stringify(["email", iss, email]));

/** Undefined where the token names no address that counts. */
export function subjectEmail(
  sha256: TextDigest,
  origin: Origin,
  root: Root | undefined,
  expiresAtSeconds: number,
): SubjectEmail | undefined {
  if (root === undefined || !("email" in root) || root.email === undefined) return undefined;
  const { issuedAtSeconds, email } = root;
  return { origin, email: emailDigest(sha256, origin.iss, email), issuedAtSeconds, expiresAtSeconds };
}

/** The keys of a sign-in, which the user's session and what they give in it carry. */
export function signInKeys(
  sha256: TextDigest,
  { origin, sid }: UserSignIn,
  atSeconds: number,
): readonly EndingKey[] {
  const ofSubject = foreignKeys(sha256, origin, atSeconds);
  if (sid === undefined) return ofSubject;
  const key = selectorKey(sha256, { by: "sign_in", iss: origin.iss, sid });
  return [...ofSubject, { key, sinceMs: atSeconds * 1000 }];
}

/** What a user gave to a client by one click: the code and all refresh tokens that came of it belong to it. */
type UserGrant = UserSignIn & {
  id: string;
  clientId: string;
  consentId: string;
  signedInAtSeconds: number;
  /** When the user decided. */
  startedAtSeconds: number;
  /** The key of the job that they gave it for; what else ends the job is of the user and the client. */
  jobKey?: EndingKey;
};

/** REFRESH-D-14: the keys of the refresh tokens of one click, which all that is issued for them carries. */
export function grantKeys(sha256: TextDigest, grant: UserGrant): readonly EndingKey[] {
  const { id, clientId, consentId, signedInAtSeconds, startedAtSeconds } = grant;
  const selectors: readonly EndingSelector[] = [
    { by: "grant", id },
    { by: "every_grant" },
    { by: "client", clientId },
    { by: "consent", id: consentId },
  ];
  const own = selectors.map((one) => ({ key: selectorKey(sha256, one), sinceMs: startedAtSeconds * 1000 }));
  // An ending of the user's sign-ins up to a time also ends what they led to.
  const ofSignIn = signInKeys(sha256, grant, Math.min(signedInAtSeconds, startedAtSeconds));
  return [...own, ...ofSignIn, ...(grant.jobKey === undefined ? [] : [grant.jobKey])];
}

// --- the record -------------------------------------------------------------------------------------------------

/**
 * The ending of a token, of the refresh tokens of one click, of a job, of a sign-in or of a key of ours has no cut-off:
 * nothing is issued again under its name, or signed with it.
 */
const ALWAYS_MS = Number.MAX_SAFE_INTEGER;

/**
 * The record that ends what the selector names. A token, the refresh tokens of a click, a job, a sign-in or a key ends
 * for good; of anything else it ends what exists up to a cut-off. That reaches the time of one write into the future,
 * because what another instance writes at this moment may not see the record yet; what is issued within that time is ended
 * too.
 */
export function buildEnding(sha256: TextDigest, selector: EndingSelector, nowMs: number): Ending {
  return {
    key: selectorKey(sha256, selector),
    cutOffMs: cutOffOf(selector, nowMs),
    atMs: nowMs,
    expiresAtSeconds: Math.ceil(nowMs / 1000) + keptSeconds(selector),
  };
}

/**
 * POLICY-D-20: a subject that is enabled again has nothing of what it had before. The record takes the place of those
 * without a cut-off that are on record.
 */
export const liftDisabled = (sha256: TextDigest, { iss, sub }: Origin, nowMs: number): Ending =>
  buildEnding(sha256, { by: "subject", iss, sub, upToMs: nowMs }, nowMs);

type Account = "disabled" | "enabled";

/** SSF-D-12: when a subject was disabled or enabled, as the ending of a name that no token carries; it stays as long as the events count. */
export const accountMark = (
  sha256: TextDigest,
  { iss, sub }: Origin,
  became: Account,
  { ofMs, nowMs }: { ofMs: number; nowMs: number },
): Ending => ({
  key: accountKey(sha256, { iss, sub }, became),
  cutOffMs: ofMs,
  atMs: nowMs,
  expiresAtSeconds:
    Math.ceil(nowMs / 1000) + (became === "disabled" ? DISABLED_KEPT_SECONDS : ENDING_KEPT_SECONDS),
});

/** The key that is ended where the subject was disabled or enabled after that time. */
export const accountAfter = (
  sha256: TextDigest,
  origin: Origin,
  became: Account,
  afterMs: number,
): EndingKey => ({ key: accountKey(sha256, origin, became), sinceMs: afterMs + 1 });

const accountKey = (sha256: TextDigest, { iss, sub }: Origin, became: Account): string =>
  sha256(JSON.stringify([became, iss, sub])).slice(0, KEY_CHARS);

/** The key that an ending reaches only where its subject is disabled. */
export const disabledKey = (sha256: TextDigest, { iss, sub }: Origin): EndingKey => ({
  key: selectorKey(sha256, { by: "subject", iss, sub }),
  sinceMs: ALWAYS_MS,
});

function cutOffOf(selector: EndingSelector, nowMs: number): number {
  const reachMs = nowMs + ENDING_REACH_MS;
  switch (selector.by) {
    case "token":
    case "grant":
    case "sign_in":
    case "foreign_token":
    case "job":
    case "key":
      return ALWAYS_MS;
    case "subject":
      return selector.disabled ? ALWAYS_MS : Math.min(selector.upToMs ?? reachMs, reachMs);
    case "everything":
      return Math.min(selector.upToMs ?? reachMs, reachMs);
    default:
      return reachMs;
  }
}

function keptSeconds(selector: EndingSelector): number {
  if (selector.by === "subject" && selector.disabled) return DISABLED_KEPT_SECONDS;
  switch (selector.by) {
    // These endings also refuse foreign tokens, whose lifetime is not ours.
    case "subject":
    case "issuer":
    case "everything":
      return ENDING_KEPT_SECONDS;
    // An instance that was stopped may still have the withdrawn key when it goes on.
    case "key":
      return ENDING_KEPT_SECONDS;
    case "client":
    case "rule":
    case "consent":
    case "claims":
    case "grant":
    case "sign_in":
    case "foreign_token":
    case "job":
    case "every_grant":
      return REFRESH_DAYS_MAX * 24 * 3600;
    case "token":
    case "actor":
    case "trust_domain":
      return ACCESS_TOKEN_SECONDS_MAX;
  }
}

/** The cut-off that an operator is told; undefined for what ends for good. */
export const cutOffShown = ({ cutOffMs }: Pick<Ending, "cutOffMs">): number | undefined =>
  cutOffMs === ALWAYS_MS ? undefined : cutOffMs;
