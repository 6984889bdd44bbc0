/** Keys that a request proves, by DPoP or by the certificate of its handshake, to which what is issued may be bound. */
import { defined, ok, sparse } from "../../result.ts";
import { proveKeysOf } from "../prove-keys.ts";
import type { TokenRequest } from "../token-request.ts";
import type { Part, TokenOption } from "./option.ts";

export const keysOption: TokenOption = {
  prove(ports, request, evidence) {
    const proven = proveKeysOf(ports, request.form, evidence);
    if (!proven.ok) return proven;
    const { keys, spends } = proven.value;
    return ok(defined<TokenRequest>({ ...request, client: { ...request.client, keys }, spends }));
  },
  grant: (_ports, { access: { subject } }, { allowed: { confirmation } }) => ({
    row: sparse<NonNullable<Part["row"]>>({ confirmation }),
    granted: sparse<NonNullable<Part["granted"]>>({ cnf: confirmation }),
    policy: sparse<NonNullable<Part["policy"]>>({
      unbound: subject?.boundTo !== undefined && confirmation === undefined ? true : undefined,
    }),
  }),
};
