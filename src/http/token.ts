/** POST /token: reads the form, authenticates the client, answers; a refusal is recorded durably before it is told. */

import type { AuditedRequest } from "../flows/refusal.ts";
import { answerTokenRequest } from "../flows/token.ts";
import type { Ports } from "../ports.ts";
import { privateJson } from "./answers.ts";
import { authenticateForm, authorizationOf, readForm, recordRefusal, refuse } from "./form.ts";
import type { Handler } from "./handler.ts";

const ENDPOINT = "/token";

export function tokenEndpoint(ports: Ports): Handler {
  return async (request, peer) => {
    const audited: AuditedRequest = { id: peer.requestId, endpoint: ENDPOINT, source_ip: peer.address };
    const authorization = authorizationOf(request);
    const challenged = authorization !== undefined;
    const form = await readForm(request);
    if (!form.ok) return refuse(form.error, challenged);
    // RFC6749-5.2-2: a request without a grant type is refused before its client is authenticated.
    if (form.value.grant_type === undefined) {
      return refuse({ kind: "request_malformed", reason: "grant_type_missing" }, challenged);
    }
    // RFC6749-4.4-1, RFC6749-4.4.2-2, RFC6749-10.1-4, RFC6749-10.2-1: no token without client authentication, whatever the grant.
    const client = await authenticateForm(ports, form.value, authorization, audited, peer);
    if (!client.ok) {
      const { failure, refused } = client.error;
      return { ...refuse(failure, challenged), refused };
    }
    const token = await answerTokenRequest(ports, {
      client: client.value,
      form: form.value,
      request: audited,
    });
    if (token.ok) return privateJson(200, token.value); // RFC6749-5.1-1
    return refuse(await recordRefusal(ports, token.error, client.value.spends), challenged);
  };
}
