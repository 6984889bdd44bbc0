/** Sections of the configuration that are in force as they are written: the schema is their type as well. */
import * as v from "valibot";
import {
  CLIENT_IDLE_SECONDS,
  CLIENT_UNUSED_SECONDS,
  CLIENT_UNUSED_SECONDS_OPEN,
  CLIENTS_REGISTERED_MAX,
} from "../limits/clients.ts";
import { PROOFS_MS_PER_SECOND, PUBLISHED_SECONDS } from "../limits/connections.ts";
import {
  KEY_ANNOUNCE_SECONDS,
  KEY_CACHE_SECONDS_MAX,
  KEY_RETIRE_SECONDS,
  KEY_ROTATE_SECONDS,
  KEY_SECONDS_MAX,
} from "../limits/keys.ts";
import { DEFERRAL_SECONDS, DEFERRAL_SECONDS_SET_MAX, DEFERRAL_SECONDS_SET_MIN } from "../limits/people.ts";
import { ASSERTION_SECONDS_MAX, CLIENT_ASSERTION_SECONDS_MAX, SKEW_SECONDS } from "../limits/tokens.ts";
import { MACHINE_GRANT_TYPES } from "../modes.ts";
import { maybe, setting, settingOfStart, whole, wholeFrom } from "../setting.ts";
import { CLIENT_CREDENTIALS, isScopeToken } from "../spec/rfc6749.ts";
import { ASSERTION_ALGORITHMS, PROOF_ALGORITHMS } from "../spec/rfc8725.ts";

// --- at the top of the file ------------------------------------------------------------------------------------

export const General = v.object({
  assertionAudience: setting(
    v.optional(v.picklist(["issuer", "issuer-or-token-endpoint"]), "issuer-or-token-endpoint"),
    'The audience that a client assertion must have: "issuer-or-token-endpoint" (the default, of which production warns), or "issuer" alone, which is strict, as RFC 10070 wants it.',
  ),
  clockSkewSeconds: setting(
    v.optional(whole(0, 60), SKEW_SECONDS),
    "By how many seconds the clocks of others may differ from ours; 30 by default.",
  ),
  /** One that has a `jti` is accepted once, so it may live longer. */
  clientAssertionSeconds: setting(
    v.optional(whole(ASSERTION_SECONDS_MAX, CLIENT_ASSERTION_SECONDS_MAX), ASSERTION_SECONDS_MAX),
    "The longest age and lifetime, in seconds, of a client assertion with a `jti`; 300 by default, 3600 at most. One without `jti` is accepted for 300 seconds at most.",
  ),
});
export type General = v.InferOutput<typeof General>;

// --- limits -----------------------------------------------------------------------------------------------------

/** A token bucket: how fast it fills, and how many tokens it holds. */
export type Rate = { perSecond: number; burst: number };

/** A limit of `count` in `seconds` by default; its bucket holds as many, or `bursts` times as many. */
const rate = (count: number, seconds: number, text: string, bursts = 1) => {
  const bucket = v.transform((most: number): Rate => ({ perSecond: most / seconds, burst: bursts * most }));
  return settingOfStart(v.optional(v.pipe(wholeFrom(1), bucket), count), `${text}; ${count} by default.`);
};

export const LimitsFile = v.strictObject({
  failuresPerMinuteBySource: rate(60, 60, "Failed authentications of one source"),
  failuresPerMinuteByClient: rate(20, 60, "Failed authentications of one source as one client"),
  proofMillisecondsPerSecond: rate(PROOFS_MS_PER_SECOND, 1, "CPU time for verifications that fail"),
  requestsPerSecondByClient: rate(
    500,
    1,
    "Requests of one client that proved itself (a public client, whose name anyone can say, is limited by what fails alone)",
    2,
  ),
  pagesPerMinuteBySource: rate(600, 60, "Pages that one source is shown, and requests on the way to them"),
  registrationsPerHourBySource: rate(20, 3600, "Registrations of one source without an initial access token"),
  registrationRequestsPerMinuteByClient: rate(
    60,
    60,
    "Requests to manage one registration, or with one initial access token",
  ),
  fetchesPerMinuteBySource: rate(30, 60, "Fetches of clients' URLs that one source may cause"),
  fetchesPerMinuteByHost: rate(60, 60, "Fetches from one host"),
});
export type Limits = v.InferOutput<typeof LimitsFile>;

// --- dpop -------------------------------------------------------------------------------------------------------

export const DpopFile = v.strictObject({
  algorithms: setting(
    v.optional(v.array(v.picklist(ASSERTION_ALGORITHMS)), [...PROOF_ALGORITHMS]),
    "The accepted algorithms of proofs, to which RS256 may be added; [] turns DPoP off.",
  ),
  nonces: setting(
    v.optional(v.array(v.picklist(["token", "api"])), ["api"]),
    'Where a proof needs a nonce of this server: "token", "api"; ["api"] by default.',
  ),
});

export type Dpop = v.InferOutput<typeof DpopFile>;

// --- deferral ---------------------------------------------------------------------------------------------------

export const DeferralFile = v.strictObject({
  seconds: setting(
    v.optional(whole(DEFERRAL_SECONDS_SET_MIN, DEFERRAL_SECONDS_SET_MAX), DEFERRAL_SECONDS),
    "How many seconds a client may wait for its user, at most, and never longer than the token lasts that it brought; 3600 by default.",
  ),
});

export type DeferralRules = v.InferOutput<typeof DeferralFile>;

// --- keys: when signing keys change -----------------------------------------------------------------------------

const span = (fallback: number, text: string, max = KEY_SECONDS_MAX) =>
  setting(v.optional(whole(1, max), fallback), text);

export const KeySchedule = v.object({
  rotateSeconds: span(KEY_ROTATE_SECONDS, "How long a signing key signs; 90 days by default."),
  announceSeconds: span(
    KEY_ANNOUNCE_SECONDS,
    "How long a signing key is published at least before it signs; a day by default.",
  ),
  retireSeconds: span(
    KEY_RETIRE_SECONDS,
    "How long a signing key is published after it has signed; two hours by default.",
  ),
  cacheSeconds: span(
    PUBLISHED_SECONDS,
    "How long a verifier may keep our key set (max-age of /jwks); 300 by default.",
    KEY_CACHE_SECONDS_MAX,
  ),
});

export type KeySchedule = v.InferOutput<typeof KeySchedule>;

// --- registration (RFC 7591) ------------------------------------------------------------------------------------

const CeilingFile = v.strictObject({
  grantTypes: setting(
    v.optional(v.pipe(v.array(v.picklist(MACHINE_GRANT_TYPES)), v.minLength(1)), [CLIENT_CREDENTIALS]),
    "Its grant types; client_credentials by default.",
  ),
  scopes: setting(
    v.pipe(v.array(v.pipe(v.string(), v.check(isScopeToken, "is not a scope token"))), v.minLength(1)),
    "Its scopes.",
  ),
});

export const RegistrationRules = v.object({
  mode: setting(
    v.optional(v.picklist(["off", "initial-access-token", "open"]), "initial-access-token"),
    'Who may register: "initial-access-token" (the default) demands a token that the operator made, "open" demands nothing, "off" allows none.',
  ),
  open: maybe(
    CeilingFile,
    "The most that a client may register for without an initial access token. It limits the clients that did so in the other modes too; without it the last one stands for them.",
  ),
  clientSecretSeconds: maybe(
    wholeFrom(1),
    "How many seconds a secret lasts that is issued at registration; without it, until it is replaced.",
  ),
  clientsMax: setting(
    v.optional(wholeFrom(1), CLIENTS_REGISTERED_MAX),
    "Registered clients of one class, at most; 10000 by default.",
  ),
  unusedSeconds: setting(
    v.optional(wholeFrom(1), CLIENT_UNUSED_SECONDS),
    "A client that never got a token is removed this many seconds after its registration; 7 days by default.",
  ),
  unusedOpenSeconds: setting(
    v.optional(wholeFrom(1), CLIENT_UNUSED_SECONDS_OPEN),
    "The same for a client that asks users and registered without an initial access token; 1 day by default.",
  ),
  idleSeconds: setting(
    v.optional(wholeFrom(1), CLIENT_IDLE_SECONDS),
    "A client is removed this many seconds after its last token; 90 days by default.",
  ),
});
export type RegistrationRules = v.InferOutput<typeof RegistrationRules>;
