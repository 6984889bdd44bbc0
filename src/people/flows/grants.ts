/** The grant types of users, for the token endpoint: with the ports of the wing beside those of the request. */
import type { PeopleGrants } from "../../flows/people.ts";
import { DEFERRED } from "../../spec/deferred-token-response.ts";
import { AUTHORIZATION_CODE, isRefreshToken, REFRESH_TOKEN } from "../../spec/rfc6749.ts";
import type { OwnPorts } from "../ports.ts";
import { askInstead } from "./ask-instead.ts";
import { cancelDeferral } from "./cancel-deferral.ts";
import { readPoll } from "./poll.ts";
import { endReplayed, readCode } from "./redeem-code.ts";
import { readRefresh } from "./refresh.ts";

export function grantsOf(own: OwnPorts): PeopleGrants {
  return {
    holderOf: async ({ families, hash }, token = "") =>
      isRefreshToken(token) ? (await families.find(hash.sha256(token)))?.family.clientId : undefined,
    read: {
      [AUTHORIZATION_CODE]: (ports, request) => readCode({ ...ports, ...own }, request),
      [REFRESH_TOKEN]: (ports, request) => readRefresh({ ...ports, ...own }, request),
      [DEFERRED]: (ports, request) => readPoll({ ...ports, ...own }, request),
    },
    ask: (ports, ...asked) => askInstead({ ...ports, ...own }, ...asked),
    cancel: (ports, request, code) => cancelDeferral({ ...ports, ...own }, request, code),
    endReplayed,
  };
}
