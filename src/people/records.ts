/** What the people's wing keeps: the bodies of its short-lived rows, and what waits in a browser and in no row. */

import type { AuditEvent } from "../audit/event.ts";
import type { AccessRequest, JobInForce, Origin } from "../policy/access.ts";
import type { SubjectClaims } from "../policy/claims.ts";
import type { EndingKey } from "../policy/endings.ts";
import type { PresentedJob, ProposedJob } from "../policy/jobs.ts";
import type { Family, SessionFacts, ShortLived, ShortLivedKind } from "../records.ts";
import type { SignInFacts } from "../spec/oidc-user.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { Chain } from "../spec/rfc8693.ts";
import type { Detail } from "../spec/rfc9396.ts";
import type { SignInWishes } from "./spec/rfc6749-authorization.ts";
import type { AuthorizationError } from "./spec/rfc9207.ts";

/** An authorization request that waits for its user, with a random id (PAGE-D-4). */
export type PendingRequest = {
  id: string;
  clientId: string;
  redirectUri: string;
  /** Whether the request named the redirect URI; then the token request has to name it too (RFC6749-4.1.3-7). */
  redirectUriSent: boolean;
  state?: string;
  challenge: string;
  /** The thumbprint of the key to which the code is bound. */
  jkt?: string;
  /** A name of the target, as it was requested. */
  target: string;
  /** The scopes of the target that were asked for; absent if no scope was named. */
  scope?: readonly string[];
  /** The requested `authorization_details`. */
  details?: readonly Detail[];
  /** Whether the client asked to go on without the user. */
  offline?: boolean;
  /** Why the client asks, in its own words. */
  reason?: string;
  /** The job that it asks for, but for the details, which are those of the request. */
  job?: ProposedJob;
  /** DTR-5.2-2: the client said that it can wait, and says so again when it brings the code. */
  canWait?: boolean;
  /** Whether the client pushed the request. */
  pushed?: boolean;
  wishes: SignInWishes;
  startedAtSeconds: number;
  renewals: number;
  /** The session for which the user signed in for this request. */
  session?: string;
  /** Whether the user was sent to sign in anew because a rule demands more of the sign-in. */
  demanded?: boolean;
  expiresAtSeconds: number;
};

/** A page of ours to which a sign-in leads, by the id of what the user is asked there; on the account page, nothing. */
export type PagePlace = { page: "review"; id: string } | { page: "ask"; id: string } | { page: "account" };

/** The same place with the request itself. */
type SignInPlace = { page: "review"; request: PendingRequest } | Exclude<PagePlace, { page: "review" }>;

/** An attempt of a user who is at a provider; `state` is its reference. */
export type SignInAttempt = {
  provider: string;
  nonce: string;
  verifier: string;
  place: SignInPlace;
  wishes: SignInWishes;
  startedAtSeconds: number;
  expiresAtSeconds: number;
};

/** The session of a user, by the digest of the cookie. */
export type Session = SignInFacts &
  SessionFacts & {
    origin: Origin;
    sub: string;
    provider: string;
    displayName?: string;
    /** An address that the provider says it has verified. */
    mail?: string;
    /** A time zone, as the provider names it. */
    zone?: string;
    /** What the provider said of them, where rules demand something of that. */
    claims?: SubjectClaims;
    /** The provider gave nothing by which it could be asked about the user later. */
    unasked?: true;
  };

/** What an authorization code is good for, by the digest of the code. */
export type CodeRecord = SignInFacts & {
  clientId: string;
  redirectUri: string;
  redirectUriSent: boolean;
  challenge: string;
  /** The thumbprint of the key that the token request has to prove. */
  jkt?: string;
  /** As in the request. */
  canWait?: boolean;
  target: string;
  scopes: readonly string[];
  /** The `authorization_details` that the user gave. */
  details?: readonly Detail[];
  origin: Origin;
  sub: string;
  /** As in the session. */
  sid?: string;
  consentId: string;
  /** The job that the user gave it for. */
  jobId?: string;
  /** When the user signed in here: the provider stood by them then, however long ago they proved themselves to it. */
  signedInAtSeconds: number;
  usableUntilSeconds: number;
  /** How long refresh tokens that come of the code last, as the user was told. */
  refresh?: Pick<Family, "offline" | "startedAtSeconds" | "endsAtSeconds" | "idleEndsAtSeconds">;
};

/** What the user decided about a request, by its id: the same click gets the same answer for a while. */
export type DecisionRecord = {
  /** The session and the digest of the form. */
  session: string;
  click: string;
  atSeconds: number;
  /** The code, encrypted with what the form alone has; or the error that the client was told. */
  gives: { sealed: string } | AuthorizationError;
};

/** Who may use the code of a deferral, and until when: its client, as this workload, with this key. */
export type DeferralHolder = {
  clientId: string;
  workload?: string;
  /** The thumbprint of the key, or else of the certificate, that the first request proved. */
  jkt?: string;
  x5t?: string;
  endsAtSeconds: number;
};

/** What is kept of a request that waits for its user: facts that it proved, and nothing that it brought. */
export type DeferralRecord = DeferralHolder & {
  access: Omit<AccessRequest, "consents" | "nowSeconds" | "keys" | "job"> & {
    job?: Omit<JobInForce, "salt">;
  };
  /** The other members of the order that it made, but for those that a poll proves anew. */
  facts: {
    sub: string;
    chain: Chain;
    ground: { ancestors: readonly string[]; actorJti?: string };
    job?: {
      presented?: PresentedJob;
      ofActor?: PresentedJob;
      proposed?: ProposedJob;
      keys?: readonly EndingKey[];
      isAgents?: boolean;
    };
    signIn?: SignInFacts;
    subjectClaims?: JsonObject;
    manner: { tellsResource: boolean; targetFromGrant: boolean; sentAs?: "grant" | "exchange" };
    parties: Pick<AuditEvent, "subject" | "actor" | "chain" | "may_act">;
  };
  requested: NonNullable<AuditEvent["requested"]>;
  /** The id of the pending consent. */
  question: string;
  /** The keys by which it ends, and what comes of it. */
  endingKeys: readonly EndingKey[];
};

/** How it ended, and the question whose answer its link tells. */
export type DeferralEnd = DeferralHolder &
  Pick<DeferralRecord, "question"> & { by: "granted" | "refused" | "cancelled" };

export type ShortLivedBodies = {
  /** A client that proved itself left it (RFC 9126). */
  request: PendingRequest;
  /** Signed a user in, so that it does not again. */
  attempt: Record<string, never>;
  session: Session;
  decision: DecisionRecord;
  code: CodeRecord;
  /** By the id of its link, which comes of the code. */
  deferral: DeferralRecord;
  deferral_end: DeferralEnd;
};

/** A short-lived row with what is in it. */
export type PeopleRow<K extends ShortLivedKind = ShortLivedKind> = ShortLived<K, ShortLivedBodies[K]>;

/** What waits in a browser and in no row, because no user has signed in. */
export type WaitingBodies = { request: PendingRequest; pushed: PendingRequest; attempt: SignInAttempt };
