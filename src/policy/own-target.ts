/**
 * The target of our own protected endpoints (PROD-5r4-1), which is always in the registry. Tokens for it are issued by
 * rules like those for any other target.
 */
import * as v from "valibot";
import { Target, type TargetFile } from "./rules.ts";

/** Our own protected endpoints, with the scope for each. */
export const API_PATHS = {
  "/policy/explain": "policy:explain",
  "/audit/events": "audit:read",
  "/audit/checkpoints": "audit:read",
  "/audit/receipts": "receipt:read",
  "/audit/logs": "audit:read",
  "/consents": "consent:manage",
  "/register": "client:manage",
  "/revocations": "token:revoke",
  "/jobs": "job:manage",
} as const;
/** RCPT-D-10: the scope for the whole trail is one for the receipt of a token, too. */
export const ALSO_TAKES: { readonly [path: string]: ApiScope } = { "/audit/receipts": "audit:read" };

export type ApiPath = keyof typeof API_PATHS;
export type ApiScope = (typeof API_PATHS)[ApiPath];

/** The scopes of the endpoints at which tokens of ours alone are accepted. */
export const OWN_PATHS = (Object.keys(API_PATHS) as ApiPath[]).filter((path) => path !== "/consents");

export const API_SCOPES: readonly ApiScope[] = [...new Set(Object.values(API_PATHS))];

/** The audience of our own access tokens at our own endpoints (RFC9068-4-9). */
export const apiAudience = (issuer: string): string => `${issuer}/api`;

/** The audience of the tokens, always of a foreign issuer, with which users manage their own consents. */
export const consentsAudience = (issuer: string): string => `${issuer}/consents`;

/**
 * RFC9728-3.3-4: beside that audience there is the URL of each endpoint, by which a strict client asks for a token; but
 * not that of the consents, since no token of ours may have the audience at which users consent.
 */
export const apiNames = (issuer: string): readonly string[] => [
  apiAudience(issuer),
  ...OWN_PATHS.map((path) => issuer + path),
];

/** The entry of the registry for our own endpoints. */
export const apiTarget = (issuer: string): TargetFile =>
  v.parse(Target, { names: apiNames(issuer), scopes: [...API_SCOPES] });

/** RFC8693-2.1-11: names that a configured target may not take. */
export const reservedNames = (issuer: string): readonly string[] => [
  ...apiNames(issuer),
  consentsAudience(issuer),
];
