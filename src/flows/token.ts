/** A token request, once its client is authenticated: the grant reads it, the policy decides it, a token is issued. */

import { readCode } from "../people/flows/redeem-code.ts";
import { endSurplusFamilies, readRefresh } from "../people/flows/refresh.ts";
import type { Ports } from "../ports.ts";
import { StoreUnavailable } from "../ports.ts";
import type { Result } from "../result.ts";
import { defined } from "../result.ts";
import type { TokenAnswer } from "../spec/rfc6749.ts";
import { AUTHORIZATION_CODE, CLIENT_CREDENTIALS, REFRESH_TOKEN } from "../spec/rfc6749.ts";
import { JWT_BEARER_GRANT } from "../spec/rfc7523.ts";
import { TOKEN_EXCHANGE } from "../spec/rfc8693.ts";
import type { GrantType } from "./ask/grant-type.ts";
import { checkGrantType } from "./ask/grant-type.ts";
import type { Order } from "./ask/order.ts";
import { issue } from "./issue.ts";
import type { ShownKeys } from "./prove-keys.ts";
import { proveKeysOf } from "./prove-keys.ts";
import { readRedemption } from "./redeem-grant.ts";
import type { RefusedRequest } from "./refusal.ts";
import { REFRESH_RACED } from "./refusal.ts";
import { readExchange } from "./token-exchange.ts";
import type { TokenRequest } from "./token-request.ts";
import { readRequest, refuseRequest } from "./token-request.ts";

type Read = (ports: Ports, request: TokenRequest) => Promise<Result<Order, RefusedRequest>>;

const GRANTS: Record<GrantType, Read> = {
  // RFC 6749 4.4: a token for the client itself; like every grant it needs a rule.
  [CLIENT_CREDENTIALS]: (ports, request) => readRequest(ports, request, { mode: "client_credentials" }),
  [TOKEN_EXCHANGE]: readExchange,
  [JWT_BEARER_GRANT]: readRedemption,
  [AUTHORIZATION_CODE]: readCode,
  [REFRESH_TOKEN]: readRefresh,
};

/** REFRESH-D-4: a refresh token whose family another request used first is read anew; one client has few processes. */
const READS_MAX = 4;

/** RFC9449-5-2: after the client's authentication and before anything else of the request, the keys that it shows. */
export async function answerTokenRequest(
  ports: Ports,
  asked: TokenRequest,
  shown: ShownKeys,
): Promise<Result<TokenAnswer, RefusedRequest>> {
  const proven = await proveKeysOf(ports, asked.form, shown);
  if (!proven.ok) return refuseRequest(asked, proven.error);
  const { keys, spends } = proven.value;
  const request = defined<TokenRequest>({ ...asked, client: { ...asked.client, keys }, spends });
  const grantType = checkGrantType(ports.settings(), request.client, request.form);
  if (!grantType.ok) return refuseRequest(request, grantType.error);
  for (let reads = 1; ; reads++) {
    const order = await GRANTS[grantType.value](ports, request);
    if (!order.ok) return order;
    const issued = await issue(ports, request, order.value);
    if (!issued.ok && issued.error.failure.reason === REFRESH_RACED && reads < READS_MAX) continue;
    const begins =
      grantType.value === AUTHORIZATION_CODE && issued.ok && issued.value.refresh_token !== undefined;
    if (begins) await endSurplus(ports, request, order.value);
    return issued;
  }
}

/**
 * After the token is recorded: its code is used up, so a store that is lost now must not cost the client what it was
 * given. What is too much then ends with the next code.
 */
async function endSurplus(ports: Ports, { request }: TokenRequest, { ask }: Order): Promise<void> {
  const { clientId, subject, target } = ask;
  if (subject === undefined || target === undefined) return;
  try {
    await endSurplusFamilies(ports, request, { clientId, origin: subject.origin, target });
  } catch (fault) {
    if (!(fault instanceof StoreUnavailable)) throw fault;
  }
}
