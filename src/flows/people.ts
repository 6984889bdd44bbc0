/** What the people's wing does at the token endpoint where users sign in; the flows know it by this interface alone. */
import type { AskedUser } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import type { MissingConsent } from "../policy/access.ts";
import type { EndingKey } from "../policy/endings.ts";
import type { BasePorts, Ports } from "../ports.ts";
import type { Guard, RowChange } from "../records.ts";
import type { Awaitable, Result } from "../result.ts";
import type { DEFERRED } from "../spec/deferred-token-response.ts";
import type { AUTHORIZATION_CODE, REFRESH_TOKEN } from "../spec/rfc6749.ts";
import type { EndingPorts } from "./endings.ts";
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

/**
 * The link for the agent, which is absent where too many are pending, and what the audit trail has of it. `count` is there
 * for one more request about an open question: it counts the request there, unless the question has changed.
 */
export type Link = { errorUri?: string; asked: AskedUser; count?: () => Promise<boolean> };

/** The order that lacks a consent or a job, and why the agent asks, in its own words. */
export type Asking = Pick<Order, "access" | "job"> & { reason?: string };

/** A client that waits: what it is told, and what is written with it if no ending reaches the keys. */
export type Deferral = {
  told: Required<Pick<Failure, "interactionUri" | "deferral">>;
  rows: readonly RowChange[];
  endingKeys: readonly EndingKey[];
  /** The thread of its events. */
  thread: string;
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
  /** Makes a link for an agent that only lacks its user's consent, at which that user can give it (PAGE-D-23). */
  askUser(
    ports: BasePorts & Pick<Ports, "endings">,
    asking: Asking,
    missing: MissingConsent,
    nowSeconds: number,
  ): Promise<Link>;
  /** Lets a client wait for that user instead (DTR-D-1); it is refused like any other where it cannot. */
  defer(
    ports: BasePorts & Pick<Ports, "endings">,
    request: TokenRequest,
    order: Order,
    missing: MissingConsent,
    nowSeconds: number,
  ): Promise<{ asked: AskedUser; deferral?: Deferral } & Pick<Link, "count">>;
  /** Ends the wait of a client by its code (DTR-8.2-1). */
  cancel(ports: BasePorts & Pick<Ports, "journal">, request: TokenRequest, code: string): Promise<Cancelled>;
  /** RFC6749-4.1.2-4: ends what was given for a code that came twice. */
  endReplayed(
    ports: EndingPorts & Pick<Ports, "journal">,
    request: AuditedRequest,
    code: Guard,
  ): Promise<void>;
}
