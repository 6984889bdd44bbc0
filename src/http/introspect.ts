/** POST /introspect (RFC 7662): whether a token is active, for resource servers, which authenticate as clients. */

import { describeClient } from "../flows/audit-fields.ts";
import type { Authenticated } from "../flows/authenticate-client.ts";
import { introspect } from "../flows/introspect.ts";
import { spendProof } from "../flows/spend-proof.ts";
import type { OwnTokenPorts, Ports } from "../ports.ts";
import { parseTokenForm } from "../spec/rfc7009.ts";
import { privateJson } from "./answers.ts";
import {
  authenticateForm,
  type FormPorts,
  type FormRequest,
  receiveForm,
  recordRefusal,
  refuse,
} from "./form.ts";
import type { Handler, HttpResponse } from "./handler.ts";

const ENDPOINT = "/introspect";

/** PROD-7.5-2, RFC7662-2.3-1: a client that failed to authenticate always gets 401. */
const CHALLENGED = true;

type IntrospectPorts = FormPorts & OwnTokenPorts & Pick<Ports, "journal" | "introspections">;

export function introspectEndpoint(ports: IntrospectPorts): Handler {
  return async (request, peer) => {
    const received = await receiveForm(request, peer, ENDPOINT, CHALLENGED);
    if (!received.ok) return received.error;
    // RFC7662-2.1-8, RFC7662-4-7, RFC7662-4-16: there is no answer without client authentication, and the rate of
    // answers is limited.
    const client = await authenticateForm(ports, received.value);
    return client.ok ? answerClient(ports, client.value, received.value) : client.error;
  };
}

async function answerClient(
  ports: IntrospectPorts,
  client: Authenticated,
  { form, audited }: FormRequest,
): Promise<HttpResponse> {
  const spent = await spendProof(ports, client, audited);
  if (!spent.ok) return refuse(await recordRefusal(ports, spent.error, undefined), CHALLENGED);
  const caller = describeClient(client);
  const token = parseTokenForm(form);
  if (!token.ok) {
    ports.introspections.note(audited, caller, { reason: token.error.kind });
    return refuse({ kind: "request_malformed", reason: token.error.kind }, CHALLENGED);
  }
  const { answer, ...outcome } = await introspect(ports, client, token.value);
  ports.introspections.note(audited, caller, outcome);
  // RFC7662-4-13: no-store, because a stored answer would outlive the token's end.
  return privateJson(200, answer);
}
