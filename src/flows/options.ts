/**
 * The options beside the road of a token request, in the order in which the road asks them; what each may be asked is the
 * type of option.ts. What narrows stands in the policy, and what a user gives or waits for in the people's wing.
 */
import type { PolicyDecision } from "../policy/decision.ts";
import type { Endable } from "../policy/endings.ts";
import type { BasePorts, KeyProofPorts, Ports } from "../ports.ts";
import { ok, type Result } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import type { Decided, MoreClaims } from "./build-token.ts";
import { deferralOption } from "./options/deferral.ts";
import { detailsOption } from "./options/details.ts";
import { jobsOption } from "./options/jobs.ts";
import { keysOption } from "./options/keys.ts";
import type { Part, TokenOption } from "./options/option.ts";
import { platformsOption } from "./options/platforms.ts";
import { refreshOption } from "./options/refresh.ts";
import type { Order } from "./order/order.ts";
import type { KeyEvidence } from "./prove-keys.ts";
import type { RefusedRequest } from "./refusal.ts";
import { refuseRequest, type TokenRequest } from "./token-request.ts";

const OPTIONS: readonly TokenOption[] = [
  keysOption,
  platformsOption,
  jobsOption,
  detailsOption,
  refreshOption,
  deferralOption,
];

/** The request with what the evidence proves. */
export function readEvidence(
  ports: KeyProofPorts,
  request: TokenRequest,
  evidence: KeyEvidence,
): Result<TokenRequest, RefusedRequest> {
  let proven = request;
  for (const { prove } of OPTIONS) {
    const read = prove?.(ports, proven, evidence);
    if (read?.ok === false) return refuseRequest(proven, read.error);
    proven = read?.value ?? proven;
  }
  return ok(proven);
}

/** Those that have to do with the request. */
export const concerned = (settings: Settings, request: TokenRequest, order: Order): readonly TokenOption[] =>
  OPTIONS.filter(({ concerns }) => concerns(settings, request, order));

/** What these options say in the token; a question is no request, so that all are asked of it. */
export const claimsOf = (
  ports: Pick<Ports, "settings" | "hash">,
  order: Order,
  decision: PolicyDecision,
  options = OPTIONS,
): MoreClaims => joined(options.map(({ claims }) => claims?.(ports, order, decision)));

/** By what they end a token, or what may become one. */
export const endsOf = (order: Order, options = OPTIONS): Partial<Endable> =>
  joined(options.map(({ ends }) => ends?.(order)));

/** What an issued token has of these. */
export function partOf(
  ports: BasePorts,
  options: readonly TokenOption[],
  order: Order,
  decided: Decided,
  nowSeconds: number,
): Required<Part> {
  const parts = options.map(({ grant }) => grant?.(ports, order, decided, nowSeconds) ?? {});
  return {
    row: joined(parts.map(({ row }) => row)),
    guards: parts.flatMap(({ guards = [] }) => guards),
    entry: joined(parts.map(({ entry }) => entry)),
    event: joined(parts.map(({ event }) => event)),
    policy: joined(parts.map(({ policy }) => policy)),
    granted: joined(parts.map(({ granted }) => granted)),
    answer: joined(parts.map(({ answer }) => answer)),
  };
}

/** The members of all of these. */
export const joined = <T extends object>(parts: readonly (T | undefined)[]): Partial<T> =>
  Object.assign({}, ...parts);
