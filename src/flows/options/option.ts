/**
 * What the road of a token request asks of an option that stands beside it. The road names no option but in the table of
 * options.ts, whose order is that in which they are asked.
 */
import type { AuditEvent } from "../../audit/event.ts";
import type { PolicyDecision } from "../../policy/decision.ts";
import type { Endable } from "../../policy/endings.ts";
import type { BasePorts, KeyProofPorts, Ports } from "../../ports.ts";
import type { Entry, Guard, TokenRecord } from "../../records.ts";
import type { Awaitable, Result } from "../../result.ts";
import type { TokenAnswer } from "../../spec/rfc6749.ts";
import type { Decided, MoreClaims } from "../build-token.ts";
import type { Order } from "../order/order.ts";
import type { KeyEvidence } from "../prove-keys.ts";
import type { Failure, RefusedRequest } from "../refusal.ts";
import type { Known, TokenRequest } from "../token-request.ts";

export type FindPorts = BasePorts & Pick<Ports, "jobs">;

/** Why an order is not as it should be, and what the trail has of it. */
export type NotFound = Failure & { known?: Known };

/** What an issued token has of an option. */
export type Part = {
  row?: Partial<TokenRecord>;
  /** By what it ends the token, beside what the order has of it. */
  ends?: Partial<Endable>;
  /** What must hold when it is written, and is used up then. */
  guards?: readonly Guard[];
  entry?: Pick<Entry, "family" | "rows" | "question">;
  event?: Partial<Pick<AuditEvent, "type" | "grant">>;
  policy?: Partial<NonNullable<AuditEvent["policy"]>>;
  granted?: Partial<NonNullable<AuditEvent["granted"]>>;
  answer?: Partial<TokenAnswer>;
};

/** `policy` is what it has of that member beside the decision. */
type KnownOf = Omit<Known, "policy"> & { policy?: Part["policy"] };

export type TokenOption = {
  /** Reads of the evidence what the request proves by it, before anything else of the request is read. */
  prove?(ports: KeyProofPorts, request: TokenRequest, evidence: KeyEvidence): Result<TokenRequest, Failure>;
  /** Looks up what the request names, and narrows by it what the policy is asked. */
  find?(ports: FindPorts, request: TokenRequest, order: Order): Awaitable<Result<Order, NotFound>>;
  /** Reads what is true by now, which each decision does anew. */
  renew?(ports: Pick<Ports, "settings" | "facts">, order: Order): Awaitable<Order>;
  /** The request as events tell it. */
  tell?(request: TokenRequest, order: Order): TokenRequest;
  /** What the event has of it, whatever is decided. */
  known?(order: Order): KnownOf;
  /** What the token says of it beside the decision. */
  claims?(ports: Pick<Ports, "settings" | "hash">, order: Order, decision: PolicyDecision): MoreClaims;
  /** By what it ends the token, or what may become one. */
  ends?(order: Order): Partial<Endable>;
  /** What the token has of it. */
  grant?(ports: BasePorts, order: Order, decided: Decided, nowSeconds: number): Part;
  /** What a refusal changes. */
  refuse?(order: Order): Pick<RefusedRequest, "rows" | "question">;
  /** What is done once the answer is certain. */
  issued?(order: Order, answer: TokenAnswer): Awaitable<void>;
};
