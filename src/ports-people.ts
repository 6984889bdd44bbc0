/** Interfaces only: what sign-in, consent, refresh tokens and the pages of people need from the outside world. */

import type { ProviderMetadata } from "./people/spec/oidc.ts";
import type { Origin } from "./policy/ask.ts";
import type {
  FamilyFacts,
  PendingConsent,
  PresentedFamily,
  ShortLived,
  ShortLivedKind,
  WaitingBodies,
} from "./records.ts";
import type { Result } from "./result.ts";
import type { JsonObject } from "./spec/rfc8259.ts";

/** What users gave to clients, as long as refresh tokens of it may be used and an hour longer; ended families too. */
export interface Families {
  /** By the digest of any of its tokens. */
  find(digest: string): Promise<PresentedFamily | undefined>;
  /** Those of one user, the one that was used last first. */
  list(origin: Origin): Promise<readonly FamilyFacts[]>;
}

/** The rows of sign-in and authorization, shared by all instances; none is found once it has expired. */
export interface ShortLivedRows {
  /** One that comes with no event; what does is in the entry of the event. */
  add(row: ShortLived): Promise<void>;
  find<K extends ShortLivedKind>(
    kind: K,
    key: string,
    nowSeconds: number,
  ): Promise<ShortLived<K> | undefined>;
  /** Replaces the version before this one. False where that is not the current one: of two changes one is made. */
  replace(row: ShortLived): Promise<boolean>;
}

/**
 * PAGE-D-4: what waits in a browser, encrypted for it. `holder` is the digest of its cookie; of a pushed request, which no
 * browser has opened yet, that of the client.
 */
export interface Waiting {
  seal<K extends keyof WaitingBodies>(kind: K, holder: string, body: WaitingBodies[K]): string;
  /** Undefined for what was not sealed so, and for what has expired. */
  open<K extends keyof WaitingBodies>(
    kind: K,
    holder: string,
    sealed: string,
    nowSeconds: number,
  ): WaitingBodies[K] | undefined;
}

/** The most pending consents of one agent, of one user, and of both. */
export type PendingCaps = Record<"perActor" | "perSubject" | "perPair", number>;

/** Consents for which users may be asked, shared by all instances; none is found once it has expired. */
export interface PendingConsents {
  /**
   * The pending consent with the same `asked`, whatever was decided about it, or else this one, which is added. Undefined,
   * and nothing is added, where a cap is reached.
   */
  open(
    pending: PendingConsent,
    caps: PendingCaps & { nowSeconds: number },
  ): Promise<PendingConsent | undefined>;
  find(id: string, nowSeconds: number): Promise<PendingConsent | undefined>;
  /** Replaces the version before this one. False where that is not the current one: of two changes one is made. */
  replace(pending: PendingConsent): Promise<boolean>;
}

/** REFRESH-D-6: the next refresh token, kept so that the one before it opens it, and nothing else; a code, by its form. */
export interface Successors {
  seal(presented: string, successor: string): string;
  /** Throws for what was not sealed with this secret. */
  open(presented: string, sealed: string): string;
}

/** PAGE-D-5: what a form of ours carries, bound to a session and to what it is about; derived, and not stored. */
export interface FormTokens {
  of(session: string, subject: string): string;
  /** Whether this server made it, with the key-encryption key in force or with the one that it replaces. */
  accepts(token: string, session: string, subject: string): boolean;
}

export type ProviderFailure = {
  reason: "provider_unavailable" | "provider_refused" | "provider_answer_malformed";
  /** For the audit trail: the status of its answer, and the code of its error. */
  said?: JsonObject;
};

/** The OpenID Providers at which users sign in, by their name in the settings. */
export interface Providers {
  metadata(name: string): Promise<Result<ProviderMetadata, ProviderFailure>>;
  /** Redeems a code at the provider's token endpoint, for its ID token in compact form (OIDC-3.1.3.1-1). */
  redeem(
    name: string,
    asked: { code: string; verifier: string; redirectUri: string },
  ): Promise<Result<string, ProviderFailure>>;
  /** Our public keys as a client of providers, as published at `/rp/jwks`. */
  published(): readonly JsonObject[];
}
