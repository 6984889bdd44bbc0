/**
 * The records in the store (tokens, consents, registrations, the audit trail), and the entries that are written at once,
 * each with the guards that must hold then.
 */

import type { AuditEvent } from "./audit/event.ts";
import type { AuditPosition, EventFilter, Listing } from "./audit/query.ts";
import type { AccessRequest, Consent, Origin } from "./policy/access.ts";
import type { ClaimsWord, SubjectClaims } from "./policy/claims.ts";
import type { Ending, EndingKey, SubjectEmail } from "./policy/endings.ts";
import type { Job, ProposedJob } from "./policy/jobs.ts";
import type { SecretDigest } from "./settings/settings.ts";
import type { SignInFacts } from "./spec/oidc-user.ts";
import type { Ceiling } from "./spec/rfc7591.ts";
import type { Confirmation } from "./spec/rfc7800.ts";
import type { JsonObject } from "./spec/rfc8259.ts";
import type { Chain } from "./spec/rfc8693.ts";
import type { Detail } from "./spec/rfc9396.ts";

/** The record of an issued token, kept until the token has expired. */
export type TokenRecord = {
  jti: string;
  clientId: string;
  /** The SPIFFE ID of the client, which it proved or which the operator gave it. */
  workload?: string;
  subject: string;
  origin: Origin;
  audience: string;
  scope: string;
  /** Its `authorization_details`, as granted. */
  details?: readonly Detail[];
  /** The whole chain, current actor first, even if the target may see only a part of it. */
  chain: Chain;
  mayAct?: JsonObject;
  /** The `jti` of every token of ours from which this one was exchanged, nearest first. */
  ancestors: readonly string[];
  ruleId: string;
  consentId?: string;
  /** JOB-D-8: the job that it was issued for; of another server's, with its issuer and its end. */
  jobId?: string;
  jobIssuer?: string;
  jobEndsAtSeconds?: number;
  /** PCL-D-7: what its issuer said of the subject, where rules demand something of that. */
  claims?: SubjectClaims;
  /** The key that the token is bound to. */
  confirmation?: Confirmation;
  issuedAtSeconds: number;
  expiresAtSeconds: number;
  /** The keys of the token and those of its ancestors. */
  endingKeys: readonly EndingKey[];
};

export type TokenFacts = {
  record: TokenRecord;
  /** The records of its ancestors, as far as there are any. */
  ancestors: readonly TokenRecord[];
  /** The consents under which it and its ancestors were issued, withdrawn ones too. */
  consents: readonly StoredConsent[];
  /** The job of ours that it was issued for; absent where that is not on record. */
  job?: Job;
  /** The first ending that reaches it or an ancestor, by the event that recorded it. */
  ended?: { eventId: string; atMs: number };
};

/** PCL-D-8: what the issuer of a user said of them last; `expiresAtSeconds` is when they have nothing here. */
export type SubjectWord = ClaimsWord & { origin: Origin; expiresAtSeconds: number };

/** A condition that has to hold at the moment of writing, or nothing is written. */
export type Guard =
  /** The `jti` of an assertion was not used before; writing the entry records its use (RFC7523-3-14). */
  | { kind: "jti_fresh"; issuer: string; jti: string; expiresAtSeconds: number }
  /** The same for the `jti` of a JWT authorization grant (IDC-5.5-2). */
  | { kind: "grant_fresh"; issuer: string; jti: string; expiresAtSeconds: number }
  /** The same for the `jti` of a DPoP proof, among those of its key, which `issuer` names (RFC9449-11.1-2). */
  | { kind: "proof_fresh"; issuer: string; jti: string; expiresAtSeconds: number }
  /** No ending reaches one of the keys. */
  | { kind: "not_ended"; keys: readonly EndingKey[] }
  /** The same for the signing key of what is written, so that what is signed by a withdrawn key is not recorded. */
  | { kind: "key_stands"; keys: readonly EndingKey[] }
  /** The same for an authorization code, by its digest (RFC6749-10.5-2). */
  | { kind: "code_fresh"; issuer: string; jti: string; expiresAtSeconds: number }
  /** The consent stands in this version: neither replaced, withdrawn nor expired. */
  | { kind: "consent_current"; id: string; version: number; nowSeconds: number }
  /** JOB-D-11: fewer tokens than `most` were issued for the job; writing the entry counts one more. */
  | { kind: "job_below"; id: string; most: number };

/**
 * What a user gave by one click, with its refresh tokens, which come one from another: their family. REFRESH-D-13: its
 * times are those that the user was told, whatever the settings say later.
 */
export type Family = SignInFacts & {
  /** Its id; the `grant` of events and endings. */
  id: string;
  clientId: string;
  /** The client is public: each use of a refresh token gives the next one. */
  rotates: boolean;
  origin: Origin;
  /** The `sub` that we give the user. */
  sub: string;
  /** A name of the target, as it was requested. */
  target: string;
  scopes: readonly string[];
  /** The `authorization_details` that the user gave (RFC9396-11.2-1). */
  details?: readonly Detail[];
  consentId: string;
  /** The job that the user gave it for. */
  jobId?: string;
  /** The thumbprint of the key that its tokens are bound to. */
  jkt?: string;
  /** Whether the user lets the client go on without them, which decides how long it lasts. */
  offline: boolean;
  startedAtSeconds: number;
  endsAtSeconds: number;
  /** The time moves with each use; absent if the family does not end by want of use. */
  idleEndsAtSeconds?: number;
  usedAtSeconds: number;
  /** The number of its current token, from 1 on. */
  generation: number;
  endingKeys: readonly EndingKey[];
};

/** What the provider of a user said of them last: one row for all of their sign-ins and families, on all instances. */
export type Recheck = {
  origin: Origin;
  /** Each change counts it up. */
  version: number;
  /** The name of the provider. */
  provider: string;
  /** When it stood by the user, at their sign-in or when it was asked; 0 once it does not, or wants to see them first. */
  confirmedAtSeconds: number;
  /** When it was asked last, whatever came of it; of a user whom it denies, the question whose answer got lost, or 0. */
  askedAtSeconds: number;
  /** Its own refresh token of the last sign-in, encrypted; absent if it gave none, or does not know the user any more. */
  sealed?: string;
  expiresAtSeconds: number;
};

export type FamilyFacts = {
  family: Family;
  /** The first ending that reaches the family; `reason` is that of its event, as long as that is kept. */
  ended?: { eventId: string; atMs: number; reason?: string };
  /** The token before the current one was sent again from another source than that of the rotation. */
  retriedElsewhere?: true;
};

/** The token of this generation was replaced at this time of the store. `by` is the digest of the source, until it is forgotten. */
export type FamilyRotation = { generation: number; atMs: number; by?: string };

/** A family by one of its tokens, which is the one of generation `presented`. */
export type PresentedFamily = FamilyFacts & {
  presented: number;
  /**
   * The last rotation, and those of a moment before it, the newest first, with the time of the store now. `sealed` is the
   * current token as the one before opens it.
   */
  rotated?: { latest: readonly FamilyRotation[]; nowMs: number; sealed?: string };
  /** Absent for a user of whose provider nothing is on record. */
  recheck?: Recheck;
};

/**
 * Starts a family with its first token, or uses it: by its current token, which `next` then replaces, or `again` by the
 * token before that. Fails as `family_current` where the presented token is not that one, and where the time is over by
 * the clock of the store, or a retry `elsewhere` is the second one. `earlier` are rotations that stay known.
 */
export type FamilyChange =
  | { start: Family; digest: string }
  | {
      use: string;
      presented: number;
      atSeconds: number;
      idleEndsAtSeconds?: number;
      next?: { digest: string; sealed: string; by: string; earlier: readonly FamilyRotation[] };
      again?: { windowMs: number; elsewhere: boolean };
    };

/** A job on record; `issued` is the number of its tokens, where that is bounded. */
export type JobRecord = Job & { issued?: number; endingKeys: readonly EndingKey[] };

export type JobFacts = {
  job: JobRecord;
  /** The first ending that reaches the job; `reason` is that of its event, as long as that is kept. */
  ended?: { eventId: string; atMs: number; reason?: string };
};

export type StoredConsent = Consent & { withdrawnAtSeconds?: number };

/** HTTP-D-58: a consent that is neither withdrawn nor expired; `givenAtSeconds` is when it was first given. */
export type StandingConsent = Consent & { givenAtSeconds: number };

/**
 * Fails as `consent_current` when an added id exists, when a replacement is not the next version of a consent that
 * stands, and when there is no such consent to withdraw. Subject and actor of a consent never change.
 */
export type ConsentChange = { add: Consent } | { replace: Consent } | { withdraw: string; atSeconds: number };

/** A client that registered itself: its metadata as recorded, and the ceiling that an update may not exceed. */
export type RegisteredClient = {
  clientId: string;
  version: number;
  metadata: JsonObject;
  registrationClass: string;
  ceiling: Ceiling;
  /** The last ceiling that a configuration gave its class; it may be narrower, and is not written with the client. */
  classCeiling?: Ceiling;
  /** The number of the current registration access token; earlier ones are refused (RFC7592-A.1-2). */
  tokenGeneration: number;
  secrets: readonly SecretDigest[];
  issuedAtSeconds: number;
};

/** An initial access token (RFC7591-3-3), created by the operator on the host; only its digest is stored. */
export type InitialToken = {
  id: string;
  digest: string;
  registrationClass: string;
  ceiling: Ceiling;
  uses: number;
  usesMax: number;
  createdAtSeconds: number;
  expiresAtSeconds: number;
  revokedAtSeconds?: number;
};

/**
 * Fails as `initial_token_usable` when the initial access token is used up, expired or revoked; as
 * `registrations_below` when its class has `clientsMax` clients already; as `registration_current` when the client is
 * removed or of another version, or when a secret is in use. A removed client leaves its id and nothing else.
 */
export type RegistrationChange =
  | { register: RegisteredClient; initialTokenId?: string; clientsMax: number }
  /** Replaces metadata, secrets and token generation; `version` is the next one. */
  | { update: RegisteredClient; atSeconds: number }
  /**
   * With `version`, only if that is the current one. With `unusedSince`, only if its last token, or its registration if
   * it never had one, is not later.
   */
  | { remove: string; version?: number; unusedSince?: number; atSeconds: number };

/**
 * What one call of the journal writes: an event, and with it a token, a consent, a registration, a family or rows of
 * sign-in, if all guards hold.
 */
export type Entry = {
  event: AuditEvent;
  token?: TokenRecord;
  /** The token is a use of a client that registered itself, of which the last one is kept (RFC7591-5-5). */
  isUse?: boolean;
  guards?: readonly Guard[];
  consent?: ConsentChange;
  /** The next version of a question that its user decides, or whose refusal an agent is told. */
  question?: PendingConsent;
  registration?: RegistrationChange;
  /** A job that is new, the consents that are given with it (JOB-D-6), and how many may live with it at most (JOB-D-24). */
  job?: { add: JobRecord; consents: readonly Consent[]; most: JobCaps };
  family?: FamilyChange;
  rows?: readonly RowChange[];
  /** What a sign-in shows, in place of what the provider said of the user before. */
  recheck?: Recheck;
  /** The address that the issuer of the subject named for them, if this is their latest token. */
  email?: SubjectEmail;
  /** PCL-D-8: what the issuer of a user says of them from now on. */
  claims?: SubjectWord;
  /** Withdrawing a consent and removing a client end the tokens under them without it. */
  ending?: Ending;
  lift?: Ending;
  /** What it ends beside, and when it disabled or enabled a subject. */
  also?: readonly Ending[];
};

/** JOB-D-24: the most jobs of one agent that live at the same time, for one user and in all. */
export type JobCaps = { ofPairMax: number; ofActorMax: number };

/** A guard, or a condition of a change: it has to hold at the moment of writing. */
export type Precondition =
  | Guard["kind"]
  | "family_current"
  | "jobs_below"
  | "row_new"
  | "question_current"
  | "initial_token_usable"
  | "registrations_below"
  | "registration_current";

// --- sign-in and authorization, short-lived ------------------------------------------------------------------------

/** The rows of sign-in and authorization; the store takes their bodies as they are. */
export type ShortLivedKind =
  | "request"
  | "attempt"
  | "session"
  | "decision"
  | "code"
  | "deferral"
  | "deferral_end";

/** A session of a user, as far as an ending goes: when it began, and what the provider calls its own. */
export type SessionFacts = { startedAtSeconds: number; sid?: string };

/**
 * `holder` is the digest of the browser or of the user that it belongs to, `jobId` the job of ours that it is kept for. Each
 * change counts the version up.
 */
export type ShortLived<K extends ShortLivedKind = ShortLivedKind, Body = object> = {
  kind: K;
  key: string;
  version: number;
  holder?: string;
  jobId?: string;
  body: Body;
  expiresAtSeconds: number;
};

/**
 * Fails as `row_new` where an added row exists already. Beyond `most` rows of one kind and holder the oldest are
 * removed, so that no user fills the store.
 */
export type RowChange<Row = ShortLived> =
  | { add: Row; most?: number }
  | { remove: ShortLivedKind; key: string };

/**
 * A consent that an agent lacks and for which its user may be asked, by a random id. `asked` is the digest of user,
 * agent, target and scopes; `subject` is the digest of the user.
 */
export type PendingConsent = {
  id: string;
  version: number;
  asked: string;
  /** The SPIFFE ID of the agent. */
  actor: string;
  subject: string;
  /** The access request that the policy refused, and when; and why the agent asked, in its own words. */
  ask: Omit<AccessRequest, "consents" | "nowSeconds"> & { reason?: string };
  /** The job that the agent asks for. */
  job?: ProposedJob;
  startedAtSeconds: number;
  renewals: number;
  /** The user has allowed or refused. */
  decided?: boolean;
  /** The user has refused, which they may take back until an agent is told. */
  denied?: true;
  told?: true;
  /** Clients wait for the answer, each with a code: the id of its link, and when it ends. */
  codes?: readonly { link: string; endsAtSeconds: number }[];
  /** Only clients that wait were given links. */
  unlinked?: true;
  /** When such a client last cancelled; with the last of them the question is closed. */
  cancelledAtSeconds?: readonly number[];
  closed?: true;
  /** How often it was asked again while it was open, when last, and how many of these times an event tells. */
  polls: number;
  polledAtSeconds?: number;
  pollsRecorded: number;
  expiresAtSeconds: number;
};

/** A security event for one receiver; `body` is the signed text, which stays the same however often it is sent. */
export type Signal = {
  stream: string;
  jti: string;
  body: string;
  /** The audit event of what it tells of, and when that happened. */
  eventId: string;
  atMs: number;
  expiresAtSeconds: number;
};

/** One event of the audit trail with its position; `body` is the exact text that was hashed. */
export type AuditRecord = AuditPosition & { body: string };

/** `newestFirst` reverses the order, so that what follows `after` is older. */
export type AuditQuery = Omit<EventFilter, "lineageOf" | "holds"> &
  Listing & { limit: number; newestFirst?: boolean };

export type CheckpointRow = { log: string; treeSize: number; timeMs: number; jws: string };
