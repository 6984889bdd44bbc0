/**
 * The target of our own protected endpoints (PROD-5r4-1), which is always in the registry. Tokens for it are issued by
 * rules like those for any other target.
 */
import * as v from "valibot";
import type { TargetFile } from "./rules.ts";
import { Target } from "./rules.ts";

export const API_SCOPES = [
  "policy:explain",
  "audit:read",
  "consent:manage",
  "client:manage",
  "token:revoke",
] as const;
export type ApiScope = (typeof API_SCOPES)[number];

/** Audience of our own access tokens at our own endpoints (RFC9068-4-9). */
export const apiAudience = (issuer: string): string => `${issuer}/api`;

/** Audience of the tokens, always of a foreign issuer, with which users manage their own consents. */
export const consentsAudience = (issuer: string): string => `${issuer}/consents`;

/** The entry of the registry for our own endpoints. */
export const apiTarget = (issuer: string): TargetFile =>
  v.parse(Target, { names: [apiAudience(issuer)], scopes: [...API_SCOPES] });

/** RFC8693-2.1-11: names that a configured target may not take. */
export const reservedNames = (issuer: string): readonly string[] => [
  apiAudience(issuer),
  consentsAudience(issuer),
];
