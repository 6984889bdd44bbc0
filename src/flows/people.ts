/** What the people's wing does at the token endpoint where users sign in; the flows know it by this interface alone. */
import type { AskedUser, AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import type { MissingConsent, Trace } from "../policy/access.ts";
import type { BasePorts, Ports } from "../ports.ts";
import type { Guard, Precondition } from "../records.ts";
import type { Awaitable, Result } from "../result.ts";
import type { DEFERRED } from "../spec/deferred-token-response.ts";
import type { AUTHORIZATION_CODE, REFRESH_TOKEN, TokenAnswer } from "../spec/rfc6749.ts";
import type { EndingPorts } from "./endings.ts";
import type { OrderDenied } from "./order/decide-order.ts";
import type { Order } from "./order/order.ts";
import type { AuditedRequest, Failure, RefusedRequest, Unrecorded } from "./refusal.ts";
import type { ExchangePorts } from "./token-exchange.ts";
import type { TokenRequest } from "./token-request.ts";

/** Reads a request of one grant type: verifies what it brings, and may end what users gave too often. */
export type GrantPorts = ExchangePorts & Pick<Ports, "consents" | "families" | "journal">;

export type ReadGrant = (
  ports: GrantPorts,
  request: TokenRequest,
) => Awaitable<Result<Order, RefusedRequest | Unrecorded>>;

/** A decision that lacks nothing but a consent of the user. */
export type LackingConsent = Pick<OrderDenied, "failure" | "trace"> & { missing: MissingConsent };

/** What becomes of such a request where its user is not asked, or was asked before. */
export type Otherwise = {
  refusal(failure: Failure, trace: Trace, asked?: AskedUser): RefusedRequest;
  refuseEnded(trace: Trace): Awaitable<Result<never, RefusedRequest>>;
  lost(
    failed: readonly Precondition[],
    event: AuditEvent,
  ): Awaitable<Result<TokenAnswer, RefusedRequest | Unrecorded>>;
};

/** What came of a cancellation: `nothing` says why it changed nothing, which the client is not told. */
export type Cancelled = { cancelled: true } | { nothing: Reason } | { refused: Failure };

export interface PeopleGrants {
  /** The client that a refresh token was issued to. */
  holderOf(
    ports: BasePorts & Pick<Ports, "families">,
    refreshToken: string | undefined,
  ): Promise<string | undefined>;
  /** A token request with an authorization code, with a refresh token, or with the code of a deferral. */
  readonly read: Readonly<
    Record<typeof AUTHORIZATION_CODE | typeof REFRESH_TOKEN | typeof DEFERRED, ReadGrant>
  >;
  /** Asks that user, by a link for the agent (PAGE-D-23) or by letting the client wait (DTR-D-1). */
  ask(
    ports: BasePorts & Pick<Ports, "endings" | "journal">,
    request: TokenRequest,
    order: Order,
    lacking: LackingConsent,
    nowSeconds: number,
    otherwise: Otherwise,
  ): Promise<Result<TokenAnswer, RefusedRequest | Unrecorded>>;
  /** Ends the wait of a client by its code (DTR-8.2-1). */
  cancel(ports: BasePorts & Pick<Ports, "journal">, request: TokenRequest, code: string): Promise<Cancelled>;
  /** RFC6749-4.1.2-4: ends what was given for a code that came twice. */
  endReplayed(
    ports: EndingPorts & Pick<Ports, "journal">,
    request: AuditedRequest,
    code: Guard,
  ): Promise<void>;
}
