/** POST /revoke (RFC 7009): a client ends a token that was issued to it. */

import type { PeopleGrants } from "../flows/people.ts";
import { type KeyEvidence, proveKeysOf } from "../flows/prove-keys.ts";
import { type Cancel, type RevokePorts, revoke } from "../flows/revoke.ts";
import { spendProof } from "../flows/spend-proof.ts";
import type { TokenRequest } from "../flows/token-request.ts";
import type { KeyProofPorts } from "../ports.ts";
import { defined } from "../result.ts";
import { privateJson } from "./answers.ts";
import {
  authenticateForm,
  type FormPorts,
  receiveForm,
  recordRefusal,
  recordRefusalOf,
  refuse,
  throttleVain,
  withNonce,
} from "./form.ts";
import type { Handler } from "./handler.ts";

const ENDPOINT = "/revoke";

/**
 * RFC7009-2.2-1, RFC7009-2.2-2: the status says everything, and is the same for an ended token and for no token at all;
 * the body is there for clients that read every answer as JSON.
 */
const DONE = privateJson(200, {});

type RevokeEndpointPorts = FormPorts & RevokePorts & KeyProofPorts;

export function revokeEndpoint(ports: RevokeEndpointPorts, people: PeopleGrants | undefined): Handler {
  return async (request, peer) => {
    const received = await receiveForm(request, peer, ENDPOINT);
    if (!received.ok) return received.error;
    const { form, audited, keys, challenged } = received.value;
    // RFC7009-2.1-6, RFC7009-5-2, RFC7009-5-4: the client authenticates first, as at the token endpoint; a public one
    // is known by its client_id.
    const client = await authenticateForm(ports, received.value, "public");
    if (!client.ok) return client.error;
    const spent = await spendProof(ports, client.value, audited);
    if (!spent.ok) return refuse(await recordRefusal(ports, spent.error, undefined), challenged);
    const cancel =
      people && cancelWith(ports, people, keys, { client: client.value, form, request: audited });
    const revoked = await revoke(ports, client.value, audited, form, cancel);
    if (revoked.ok) {
      const { nothing } = revoked.value;
      const wait = nothing && throttleVain(ports, client.value, nothing, audited);
      return wait === undefined ? DONE : refuse(wait, challenged);
    }
    const { spends: _, ...unspent } = client.value;
    const failure = await recordRefusalOf(ports, unspent, revoked.error, audited);
    return withNonce(ports, keys, refuse(failure, challenged));
  };
}

/** DTR-11.1-2: a code that is bound to a key is cancelled by the holder of that key. */
const cancelWith =
  (
    ports: RevokeEndpointPorts,
    people: PeopleGrants,
    evidence: KeyEvidence,
    tokenRequest: TokenRequest,
  ): Cancel =>
  async (code) => {
    const proven = proveKeysOf(ports, tokenRequest.form, evidence);
    if (!proven.ok) return { refused: proven.error };
    const { keys, spends } = proven.value;
    return people.cancel(
      ports,
      defined<TokenRequest>({ ...tokenRequest, client: { ...tokenRequest.client, keys }, spends }),
      code,
    );
  };
