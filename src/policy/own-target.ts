/**
 * The target that is always in the registry: our own protected endpoints (PROD-5r4-1). Who gets a token for them is
 * decided by rules like any others.
 */
import * as v from "valibot";
import type { TargetFile } from "./rules.ts";
import { Target } from "./rules.ts";

export const API_SCOPES = ["policy:explain", "audit:read", "consent:manage", "client:manage"] as const;
export type ApiScope = (typeof API_SCOPES)[number];

/** Audience of our own access tokens at our own endpoints (RFC9068-4-9). */
export const apiAudience = (issuer: string): string => `${issuer}/api`;

/** Audience of the tokens by which users manage their own consents; never one of ours. */
export const consentsAudience = (issuer: string): string => `${issuer}/consents`;

export const apiTarget = (issuer: string): TargetFile =>
  v.parse(Target, { names: [apiAudience(issuer)], scopes: [...API_SCOPES] });

/** RFC8693-2.1-11: names that a configured target may not take. */
export const reservedNames = (issuer: string): readonly string[] => [
  apiAudience(issuer),
  consentsAudience(issuer),
];
