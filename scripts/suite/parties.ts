/** What a server can offer, and the clients, APIs and scopes that checks speak of. */
import type { Identity } from "./certificates.ts";
import type { Key } from "./keys.ts";

/** What a server can offer; an adapter lists those that its server does. */
export const FEATURES = [
  "metadata",
  "client_credentials",
  "resource",
  "client_secret_post",
  "private_key_jwt",
  "spiffe_jwt",
  "spiffe_x509",
  "tls_client_auth",
  "self_signed_tls_client_auth",
  "jwt_access_tokens",
  "delegation",
  "impersonation",
  "nesting",
  "may_act",
  "chaining",
  "id_jag",
  "jwt_grants",
  "id_jag_grants",
  "cimd",
  "registration",
  "management",
  "dpop",
  "certificate_binding",
  "introspection",
  "revocation",
  "ancestors",
  "platform_grants",
  "details",
  "deferral",
  "signals_sent",
  "signals_received",
] as const;
export type Feature = (typeof FEATURES)[number];

export type Method =
  | "client_secret_basic"
  | "client_secret_post"
  | "private_key_jwt"
  | "spiffe_jwt"
  | "spiffe_x509"
  | "tls_client_auth"
  | "self_signed_tls_client_auth";

/** A client of the server, with what it proves itself by. */
export type Client = { id: string; method: Method; secret?: string; key?: Key; identity?: Identity };

/** The parts that checks play. */
export const ROLES = {
  machine: "a client with a secret: client credentials at `api` and `other`",
  second: "another one, with its secret in the body",
  signer: "a client with a key: client credentials at `api`",
  pki: "a client with a certificate of the suite's authority: client credentials at `api`",
  pinned: "a client with a certificate that it signed itself: client credentials at `api`",
  planner:
    "acts for users at `booking`, `api`, `bound`; named by `may_act` at `other`; gets grants for `partner`",
  booking: "owns `booking`; acts for users at `crew` and `api` by tokens for `booking`",
  crew: "owns `crew`; acts for users at `api` by tokens for `crew`, and impersonates them there",
  outsider: "is known, and has no rule",
  gate: "asks about tokens for `api`, and gets none",
  elsewhere: "asks about tokens for `other`, and gets none",
  guest: "redeems grants of the partner for `api`",
  clerk: "client credentials at `ledger`, with authorization_details",
  asker: "acts for users at `api` where they agreed, and may ask them",
} as const;
export type Role = keyof typeof ROLES;

/** The names by which requests name APIs and scopes. */
export type Names = Record<
  "api" | "other" | "booking" | "crew" | "bound" | "ledger" | "partner" | "read" | "write" | "detail",
  string
>;

/** Why a check could not be asked; thrown by what prepares its request. */
export class CannotAsk extends Error {}
