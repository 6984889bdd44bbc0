/**
 * The modes of the policy, in one table: what a request brings chooses one of them (PROD-3-2, PROD-3-3). Policy, flows
 * and audit trail read from it how a mode differs from the others. A new mode is a row here, a variant in the format of
 * rules, and a flow that reads its requests.
 */

import { AUTHORIZATION_CODE, CLIENT_CREDENTIALS, REFRESH_TOKEN } from "./spec/rfc6749.ts";
import { JWT_BEARER_GRANT } from "./spec/rfc7523.ts";
import { TOKEN_EXCHANGE } from "./spec/rfc8693.ts";

export type Brought = "nothing" | "subject_token" | "grant" | "code";

type Row = {
  /** The grant type of its requests, for which the client has to be registered. */
  grantType: string;
  /**
   * What names the subject; without it the client is the subject. A subject token is exchanged, a grant or a code
   * redeemed.
   */
  brings: Brought;
  /**
   * The actors in the issued token: "grows" adds the caller, which has to be a workload, to those before; "kept" shows
   * those before; the others show none, because they hide them or because there are none.
   */
  chain: "grows" | "kept" | "hidden" | "none";
  /** How a user is asked for a consent that alone is missing: by a link where the rule says so, or by the next request. */
  asks: "by_link" | "by_request" | "never";
  /** TXN-D-12: what it issues is used inside one trust domain, and nowhere else. */
  staysInside?: true;
  /** The events of a request that gets a token, and of one that gets none. */
  issued: `${string}.${string}`;
  denied: `${string}.${string}`;
};

export const MODES = {
  client_credentials: {
    grantType: CLIENT_CREDENTIALS,
    brings: "nothing",
    chain: "none",
    asks: "never",
    issued: "token.issued",
    denied: "token.denied",
  },
  delegation: {
    grantType: TOKEN_EXCHANGE,
    brings: "subject_token",
    chain: "grows",
    asks: "by_link",
    issued: "token_exchange.delegation",
    denied: "token_exchange.denied",
  },
  impersonation: {
    grantType: TOKEN_EXCHANGE,
    brings: "subject_token",
    chain: "hidden",
    asks: "never",
    issued: "token_exchange.impersonation",
    denied: "token_exchange.denied",
  },
  // TXN-D-7: its requester is named beside the actors and becomes none of them.
  transaction: {
    grantType: TOKEN_EXCHANGE,
    brings: "subject_token",
    chain: "kept",
    asks: "never",
    staysInside: true,
    issued: "token_exchange.transaction",
    denied: "token_exchange.denied",
  },
  redemption: {
    grantType: JWT_BEARER_GRANT,
    brings: "grant",
    chain: "kept",
    asks: "never",
    issued: "grant.redeemed",
    denied: "grant.denied",
  },
  authorization_code: {
    grantType: AUTHORIZATION_CODE,
    brings: "code",
    chain: "none",
    asks: "by_request",
    issued: "token.issued",
    denied: "token.denied",
  },
} as const satisfies Record<string, Row>;

export type Mode = keyof typeof MODES;

/** The modes whose row has this part. */
export type ModeWith<Part extends Partial<Row>> = {
  [M in Mode]: (typeof MODES)[M] extends Part ? M : never;
}[Mode];

export const MODE_NAMES = Object.keys(MODES) as readonly Mode[];

/** RFC7591-2-6, RFC7591-2-8, PROD-2.2-9: the grant types by which a machine gets a token. */
export const MACHINE_GRANT_TYPES: readonly string[] = [
  ...new Set(MODE_NAMES.filter((mode) => MODES[mode].brings !== "code").map((mode) => MODES[mode].grantType)),
];

/** The grant types by which a client gets what a user gave it. */
export const USER_GRANT_TYPES: readonly string[] = [AUTHORIZATION_CODE, REFRESH_TOKEN];

export const exchanges = (mode: Mode): boolean => MODES[mode].brings === "subject_token";

export const staysInside = (mode: Mode): boolean => "staysInside" in MODES[mode];

export const redeems = (mode: Mode): boolean =>
  MODES[mode].brings === "grant" || MODES[mode].brings === "code";
