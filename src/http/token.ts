/** POST /token: reads the form, authenticates the client, answers; a refusal is recorded durably before it is told. */

import type { EndingPorts } from "../flows/endings.ts";
import { documentsOfHolder } from "../flows/find-client.ts";
import type { PeopleGrants } from "../flows/people.ts";
import { CODE_REPLAYED } from "../flows/refusal.ts";
import { answerTokenRequest, type TokenPorts } from "../flows/token.ts";
import { MACHINE_GRANT_TYPES, USER_GRANT_TYPES } from "../modes.ts";
import type { Ports } from "../ports.ts";
import { TOKEN_PATH } from "../settings/audiences.ts";
import { DEFERRED } from "../spec/deferred-token-response.ts";
import { type Form, REFRESH_TOKEN } from "../spec/rfc6749.ts";
import { privateJson } from "./answers.ts";
import {
  authenticateForm,
  type FormPorts,
  type FormRequest,
  receiveForm,
  recordRefusalOf,
  refuse,
  withNonce,
} from "./form.ts";
import type { Handler, HttpResponse } from "./handler.ts";
import { answerWithWriter } from "./held.ts";

const SERVED: readonly string[] = [...MACHINE_GRANT_TYPES, ...USER_GRANT_TYPES, DEFERRED];

type TokenEndpointPorts = FormPorts & TokenPorts & EndingPorts & Pick<Ports, "outage">;

export function tokenEndpoint(ports: TokenEndpointPorts, people: PeopleGrants | undefined): Handler {
  return async (request, peer) => {
    const received = await receiveForm(request, peer, TOKEN_PATH);
    if (!received.ok) return received.error;
    const { form, challenged } = received.value;
    const { grant_type: asked } = form;
    // RFC6749-5.2-2, PROD-4.1-5: a request without a grant type is refused before its client is authenticated.
    if (asked === undefined) {
      return refuse({ kind: "request_malformed", reason: "grant_type_missing" }, challenged);
    }
    const grant = SERVED.includes(asked) ? asked : "other";
    const bytes = () => Object.values(form).join().length;
    const answer = await answerWithWriter(ports, bytes, peer, (own) =>
      answerForm(own, people, received.value, asked),
    );
    return { ...answer, grant };
  };
}

async function answerForm(
  ports: TokenEndpointPorts,
  people: PeopleGrants | undefined,
  received: FormRequest,
  grantType: string,
): Promise<HttpResponse> {
  const { form, audited, keys, challenged } = received;
  // RFC6749-4.4-1, RFC6749-4.4.2-2, RFC6749-10.1-4, RFC6749-10.2-1: there is no token without client authentication,
  // whatever the grant type. MCPC-D-9: the exception is what a user gave: a code, whose challenge binds it to its
  // client, or a refresh token, which rotates.
  // WAG-5-2: and the grant of a platform, which is the proof of the workload that it names.
  const admits = USER_GRANT_TYPES.includes(grantType) ? "public" : "workload";
  const client = await authenticateForm(holding(ports, people, form), received, admits);
  if (!client.ok) return client.error;
  const asked = { client: client.value, form, request: audited };
  const token = await answerTokenRequest(ports, asked, keys, people);
  if (token.ok) return withNonce(ports, keys, privateJson(200, token.value)); // RFC6749-5.1-1
  const { error } = token;
  if (error.event === undefined) return withNonce(ports, keys, refuse(error.failure, challenged));
  const failure = await recordRefusalOf(ports, client.value, error, audited);
  const { spends: code } = error;
  if (failure.reason === CODE_REPLAYED && code !== undefined) await people?.endReplayed(ports, audited, code);
  return withNonce(ports, keys, refuse(failure, challenged));
}

/** What a refresh token tells of its client, where that has no other proof. */
function holding(ports: TokenEndpointPorts, people: PeopleGrants | undefined, form: Form): FormPorts {
  if (people === undefined || form.grant_type !== REFRESH_TOKEN) return ports;
  const holder = () => people.holderOf(ports, form.refresh_token);
  return { ...ports, clientDocuments: documentsOfHolder(ports.clientDocuments, holder) };
}
