/** Interfaces only: what the flows read of the store. What users gave and where they are asked is beside it. */

import type { Span } from "./audit/query.ts";
import type { Consent, Origin } from "./policy/access.ts";
import type { ClaimsWord } from "./policy/claims.ts";
import type { LivingTokens } from "./policy/closure.ts";
import type { EndingKey } from "./policy/endings.ts";
import type { Job } from "./policy/jobs.ts";
import type {
  AuditQuery,
  AuditRecord,
  CheckpointRow,
  InitialToken,
  JobCaps,
  JobFacts,
  RegisteredClient,
  StandingConsent,
  StoredConsent,
  TokenFacts,
  TokenRecord,
} from "./records.ts";
import type { Awaitable } from "./result.ts";

export interface Facts {
  /** What is known of a token; undefined for a `jti` that was never written. */
  token(jti: string): Awaitable<TokenFacts | undefined>;
  /** The consents of this subject for this actor that are neither withdrawn nor expired. */
  consents(origin: Origin, actor: string, nowSeconds: number): Awaitable<readonly Consent[]>;
  /** PCL-D-7: what the issuer of the subject said of it last, apart from the tokens that clients bring. */
  claims(origin: Origin): Awaitable<ClaimsWord | undefined>;
}

/** Finds the tokens that an ending reaches, in stretches of bounded size. */
export interface EndingReach {
  /** Whether an ending on record reaches one of the keys. */
  isEnded(keys: readonly EndingKey[]): Promise<boolean>;
  /**
   * The next tokens that have not expired and carry the key since the cut-off or earlier, ended ones too, in the order
   * in which they expire: from the beginning, from the one after `afterJti`, or from the `place` that the answer before
   * gave, which is absent in the last; of a job's key, those of the job alone are looked at.
   */
  next(filter: {
    key: string;
    job?: string;
    cutOffMs: number;
    nowSeconds: number;
    afterJti?: string;
    place?: TokenPlace;
  }): Promise<{ tokens: readonly TokenFacts[]; place?: TokenPlace }>;
}

/** A place in the order in which tokens expire: that of a token, or before all of a second. */
export type TokenPlace = { expiresAtSeconds: number; jti: string };

/** PCL-D-12: the addresses that the latest tokens of issuers named, as digests. */
export interface SubjectEmails {
  /** The users whose address has this digest, which names their issuer too, ordered by `sub`. */
  having(email: string, page: { afterSub?: string; limit: number }): Promise<readonly Origin[]>;
}

export interface Registrations {
  /** A client that registered itself and was not removed. */
  client(clientId: string): Promise<RegisteredClient | undefined>;
  /** Finds an initial token by its digest, also an expired, used up or revoked one. */
  initialToken(digest: string): Promise<InitialToken | undefined>;
}

export interface Consents {
  find(id: string): Promise<StoredConsent | undefined>;
  /**
   * Lists consents by id, withdrawn and expired ones too; of one subject if `origin` is given; one page if `page` is.
   */
  list(origin?: Origin, page?: { afterId?: string; limit: number }): Promise<readonly StoredConsent[]>;
  /** Lists by id the consents of this subject that stand. */
  standing(
    origin: Origin,
    page: { nowSeconds: number; afterId?: string; limit: number },
  ): Promise<readonly StandingConsent[]>;
}

/** Jobs, also those that have ended or are over, until everything that can be told of them is past. */
export interface Jobs {
  find(id: string): Awaitable<JobFacts | undefined>;
  /** The newest job that was made of what this digest stands for, and is not over. */
  made(asked: string, nowSeconds: number): Promise<JobFacts | undefined>;
  /**
   * Lists a page of jobs, the newest first: of one subject, of one agent, or all, or of these only what lives at a time;
   * `before` is the last one of the page before.
   */
  list(page?: {
    origin?: Origin;
    actor?: string;
    livingAtSeconds?: number;
    before?: Pick<Job, "id" | "createdAtSeconds">;
  }): Promise<readonly JobFacts[]>;
  /** JOB-D-24: how many jobs of the agent live, and how many of these for this subject, up to the most of each. */
  living(
    origin: Origin,
    actor: string,
    nowSeconds: number,
    most: JobCaps,
  ): Promise<Record<"ofPair" | "ofActor", number>>;
  /** Its tokens that have not expired, ended ones too, in the order in which they were issued. */
  tokens(id: string, nowSeconds: number, limit: number): Promise<readonly TokenRecord[]>;
  /** What there is of it; `ended` is what ended it, `codeIssuer` that of codes that were used. */
  remains(
    id: string,
    at: { nowSeconds: number; codeIssuer: string; ended?: { eventId: string; atMs: number } },
  ): Promise<JobRemains>;
}

/**
 * What was given for a job and is of use until the job ends: codes that were not used, families, consents, open questions
 * to its user, and codes by which clients wait for the answer.
 */
export type JobHoldings = Record<"codes" | "families" | "consents" | "questions" | "deferrals", number>;

export type JobRemains = {
  tokens: readonly LivingTokens[];
  /** What there is for it beside tokens. */
  held: JobHoldings;
  /** By stream: how many of the events that tell of its end wait for their receiver. */
  events: ReadonlyMap<string, number>;
};

/** Reads the audit trail. Only durable records are found. */
export interface AuditTrail {
  /** The last record of every log, ordered by log name; `ended` says that nothing follows it. */
  heads(): Promise<readonly { log: string; seq: number; hash: string; ended: boolean }[]>;
  /** Events ordered by time, then log, then sequence number, or in reverse. */
  find(query: AuditQuery): Promise<readonly AuditRecord[]>;
  /** A time that no record in these ranges is before, and close to the first of them. */
  earliestMs(spans: readonly Span[]): Promise<number | undefined>;
  /** Checkpoints ordered by log and size; of a log that `after` names, only larger ones. */
  checkpoints(after: ReadonlyMap<string, number>, limit: number): Promise<readonly CheckpointRow[]>;
}
