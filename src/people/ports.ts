/** Interfaces only: what sign-in, consent, refresh tokens and the pages need beside the ports of the trunk. */

import type { BasePorts, LentPorts, RecordPorts, Timers } from "../ports.ts";
import type { PendingConsents, Rechecks, ShortLivedRows } from "../ports-people.ts";
import type { Result } from "../result.ts";
import type { Provider } from "../settings/settings.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { ShortLivedBodies, WaitingBodies } from "./records.ts";
import type { ProviderMetadata, ProviderTokens } from "./spec/oidc.ts";

/**
 * PAGE-D-4: keeps in a browser what waits there, encrypted for it. `holder` is the digest of the browser's cookie, or,
 * of a pushed request that no browser has opened yet, the digest of the client.
 */
export interface Waiting {
  seal<K extends keyof WaitingBodies>(kind: K, holder: string, body: WaitingBodies[K]): string;
  /** Opens a text; undefined if it was not sealed so, or if it has expired. */
  open<K extends keyof WaitingBodies>(
    kind: K,
    holder: string,
    sealed: string,
    nowSeconds: number,
  ): WaitingBodies[K] | undefined;
}

/**
 * REFRESH-D-6: keeps the next refresh token so that the one before it opens it, and nothing else; or a code, so that
 * its form opens it.
 */
export interface Successors {
  seal(presented: string, successor: string): string;
  /** Throws for what was not sealed with this secret. */
  open(presented: string, sealed: string): string;
}

/**
 * Keeps the refresh token that a provider gave for a user, so that it is never given out, the store alone opens none, and
 * it goes to no other provider and under no other `client_id`.
 */
export interface ProviderSecrets {
  seal(from: Pick<Provider, "issuer" | "clientId">, sub: string, refreshToken: string): string;
  /** Undefined if it was sealed of another provider or user, or with a key that is gone. */
  open(from: Pick<Provider, "issuer" | "clientId">, sub: string, sealed: string): string | undefined;
}

/**
 * PAGE-D-5: the token that a form of ours carries, bound to a session and to what it is about; it is derived, and not
 * stored.
 */
export interface FormTokens {
  of(session: string, subject: string): string;
  /** Whether this server made it, with the key-encryption key in force or with the one that it replaces. */
  accepts(token: string, session: string, subject: string): boolean;
}

export type ProviderFailure = {
  reason:
    | "provider_unavailable"
    | "provider_refused"
    | "provider_answer_malformed"
    /** It does not know the sign-in any more. */
    | "provider_denies_user"
    /** It wants to see the user before it answers. */
    | "provider_wants_user";
  /** For the audit trail: the status of the provider's answer, and the code of the error in it. */
  said?: JsonObject;
};

/** The OpenID Providers at which users sign in, by their name in the settings. */
export interface Providers {
  metadata(name: string): Promise<Result<ProviderMetadata, ProviderFailure>>;
  /** Redeems a code at the provider's token endpoint (OIDC-3.1.3.1-1); its ID token is in compact form. */
  redeem(
    name: string,
    asked: { code: string; verifier: string; redirectUri: string },
  ): Promise<Result<ProviderTokens & { idToken: string }, ProviderFailure>>;
  /** Asks whether the provider still stands by a sign-in, by its refresh token, which it may replace. */
  confirm(name: string, refreshToken: string): Promise<Result<ProviderTokens, ProviderFailure>>;
  /** PCL-D-8: what it says of the user whose access token this is. */
  userInfo(name: string, accessToken: string): Promise<Result<JsonObject, ProviderFailure>>;
  /** Our public keys as a client of this provider, as published at `/rp/jwks/{provider}`; undefined without such a one. */
  published(name: string): readonly JsonObject[] | undefined;
}

/** When clients that wait for their user polled last. */
export interface Polls {
  /** Whether a poll comes sooner than the client was told; one request is one poll, however often it is read. */
  isTooSoon(key: string, request: string): boolean;
}

/** The adapters that the wing opens for itself, or is opened with. */
export type OwnPorts = {
  shortLived: ShortLivedRows<ShortLivedBodies>;
  pendingConsents: PendingConsents;
  waiting: Waiting;
  formTokens: FormTokens;
  successors: Successors;
  providers: Providers;
  providerSecrets: ProviderSecrets;
  rechecks: Rechecks;
  polls: Polls;
  timers: Timers;
};

export type PeoplePorts = LentPorts & OwnPorts;

// --- by need ------------------------------------------------------------------------------------------------

/** The ports that find the session of a user. */
export type SessionPorts = BasePorts & Pick<PeoplePorts, "endings" | "shortLived">;

/** The ports for answering with a page: visits are limited, and refused ones are counted. */
export type PagePorts = BasePorts & Pick<PeoplePorts, "authFailures" | "throttle">;

/** The ports that find the client that asks a user. */
export type AskingClientPorts = BasePorts & Pick<PeoplePorts, "clients" | "clientDocuments">;

/** The ports that take the decision of a user: their session, the token of their form, and the journal. */
export type DecisionPorts = SessionPorts & RecordPorts & Pick<PeoplePorts, "facts" | "formTokens">;
