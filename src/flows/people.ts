/** What the people's wing does at the token endpoint where users sign in; the flows know it by this interface alone. */
import type { AskedUser } from "../audit/event.ts";
import type { MissingConsent } from "../policy/access.ts";
import type { BasePorts, Ports } from "../ports.ts";
import type { Guard } from "../records.ts";
import type { Awaitable, Result } from "../result.ts";
import type { AUTHORIZATION_CODE, REFRESH_TOKEN } from "../spec/rfc6749.ts";
import type { EndingPorts } from "./endings.ts";
import type { Order } from "./order/order.ts";
import type { AuditedRequest, RefusedRequest } from "./refusal.ts";
import type { ExchangePorts } from "./token-exchange.ts";
import type { TokenRequest } from "./token-request.ts";

/** Reads a request of one grant type: verifies what it brings, and may end what users gave too often. */
export type GrantPorts = ExchangePorts & Pick<Ports, "consents" | "families" | "journal">;

export type ReadGrant = (
  ports: GrantPorts,
  request: TokenRequest,
) => Awaitable<Result<Order, RefusedRequest>>;

/** The link for the agent, which is absent where too many are pending, and what the audit trail has of it. */
export type Link = { errorUri?: string; asked: AskedUser };

/** The order that lacks a consent, and why the agent asks, in its own words. */
export type Asking = Pick<Order, "access"> & { reason?: string };

export interface PeopleGrants {
  /** A token request with an authorization code, or with a refresh token. */
  readonly read: Readonly<Record<typeof AUTHORIZATION_CODE | typeof REFRESH_TOKEN, ReadGrant>>;
  /** Makes a link for an agent that only lacks its user's consent, at which that user can give it (PAGE-D-23). */
  askUser(
    ports: BasePorts & Pick<Ports, "endings">,
    asking: Asking,
    missing: MissingConsent,
    nowSeconds: number,
  ): Promise<Link>;
  /** RFC6749-4.1.2-4: ends what was given for a code that came twice. */
  endReplayed(
    ports: EndingPorts & Pick<Ports, "journal">,
    request: AuditedRequest,
    code: Guard,
  ): Promise<void>;
}
