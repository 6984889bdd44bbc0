/**
 * The options beside the road of a token request, in the order in which the road asks them; what each may be asked is the
 * type of options/option.ts. What narrows stands in the policy, and what a user gives or waits for in the people's wing.
 */
import type { PolicyDecision } from "../policy/decision.ts";
import type { Endable } from "../policy/endings.ts";
import type { BasePorts, KeyProofPorts, Ports } from "../ports.ts";
import { type Awaitable, ok, type Result, whenReady } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import type { Form } from "../spec/rfc6749.ts";
import type { Decided, MoreClaims } from "./build-token.ts";
import { claimsOption } from "./options/claims.ts";
import { detailsOption } from "./options/details.ts";
import { jobsOption } from "./options/jobs.ts";
import { keysOption } from "./options/keys.ts";
import type { Part, TokenOption } from "./options/option.ts";
import { platformsOption } from "./options/platforms.ts";
import { deferralOption, refreshOption } from "./options/refresh-and-deferral.ts";
import type { Order } from "./order/order.ts";
import type { KeyEvidence } from "./prove-keys.ts";
import type { RefusedRequest } from "./refusal.ts";
import { refuseRequest, type TokenRequest } from "./token-request.ts";

/** An option, and what it is asked for: no other request runs anything of it. */
type Row = {
  option: TokenOption;
  /** By what the request shows, before anything else of it is read. */
  shown?(request: TokenRequest, evidence: KeyEvidence): boolean;
  /** By what was read of the request or the question, or waits for its user, and by the configuration. */
  concerns(
    order: Order,
    form: Pick<Form, "mandate_job" | "mandate_job_request">,
    settings: Settings,
  ): boolean;
};

const ROWS: readonly Row[] = [
  {
    option: keysOption,
    shown: ({ form: { DPoP, dpop } }, { proof, leaf }) => (proof ?? leaf ?? DPoP ?? dpop) !== undefined,
    concerns: ({ access: { subject, keys } }) => subject?.boundTo !== undefined || keys !== undefined,
  },
  {
    option: platformsOption,
    shown: ({ client }) => client.platform !== undefined,
    concerns: ({ ground }) => ground.platforms.length > 0,
  },
  {
    option: jobsOption,
    concerns: ({ job, access }, { mandate_job, mandate_job_request }) =>
      (mandate_job ?? mandate_job_request ?? job ?? access.job) !== undefined,
  },
  { option: detailsOption, concerns: (_order, _form, { policy }) => policy.details.size > 0 },
  {
    option: claimsOption,
    concerns: ({ access: { subject } }, _form, { policy }) =>
      subject !== undefined && policy.claims.has(subject.origin.iss),
  },
  { option: refreshOption, concerns: ({ user }) => user !== undefined },
  { option: deferralOption, concerns: ({ resumes }) => resumes !== undefined },
];

/** The request with what the evidence proves. */
export function readEvidence(
  ports: KeyProofPorts,
  request: TokenRequest,
  evidence: KeyEvidence,
): Result<TokenRequest, RefusedRequest> {
  let proven = request;
  for (const { option, shown } of ROWS) {
    const read = shown?.(proven, evidence) ? option.prove?.(ports, proven, evidence) : undefined;
    if (read?.ok === false) return refuseRequest(proven, read.error);
    proven = read?.value ?? proven;
  }
  return ok(proven);
}

/** The options that have something to do with it. */
export const concerned = (
  settings: Settings,
  order: Order,
  form: Parameters<Row["concerns"]>[1] = {},
): readonly TokenOption[] =>
  ROWS.filter(({ concerns }) => concerns(order, form, settings)).map(({ option }) => option);

/** The order with what is true of these by now. */
export const upToNow = (
  ports: Pick<Ports, "settings" | "facts">,
  options: readonly TokenOption[],
  order: Order,
): Awaitable<Order> =>
  options.reduce<Awaitable<Order>>(
    (known, { renew }) => (renew ? whenReady(known, (one) => renew(ports, one)) : known),
    order,
  );

/** What these options say in the token. */
export const claimsOf = (
  ports: Pick<Ports, "settings" | "hash">,
  options: readonly TokenOption[],
  order: Order,
  decision: PolicyDecision,
): MoreClaims => joined(options.map(({ claims }) => claims?.(ports, order, decision)));

/** By what they end a token, or what may become one. */
export const endableOf = (options: readonly TokenOption[], order: Order): Partial<Endable> =>
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
    ends: joined(parts.map(({ ends }) => ends)),
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
