/** The grants of users, as the token endpoint knows them: with the ports of the wing beside those of the request. */
import type { PeopleGrants } from "../../flows/people.ts";
import type { Ports } from "../../ports.ts";
import { AUTHORIZATION_CODE, REFRESH_TOKEN } from "../../spec/rfc6749.ts";
import type { OwnPorts, PeoplePorts } from "../ports.ts";
import { askUser } from "./ask-user.ts";
import { endReplayed, readCode } from "./redeem-code.ts";
import { readRefresh } from "./refresh.ts";

export function grantsOf(own: OwnPorts): PeopleGrants {
  const all = (ports: Ports): PeoplePorts => ({ ...ports, ...own });
  return {
    read: {
      [AUTHORIZATION_CODE]: (ports, request) => readCode(all(ports), request),
      [REFRESH_TOKEN]: (ports, request) => readRefresh(all(ports), request),
    },
    askUser: (ports, order, missing, nowSeconds) => askUser(all(ports), order, missing, nowSeconds),
    endReplayed,
  };
}
