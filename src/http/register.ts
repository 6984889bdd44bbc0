/** POST /register (RFC 7591 3), and GET, PUT, DELETE /register/{client_id} (RFC 7592 2). */

import type { Bearer } from "../flows/authorize-api.ts";
import {
  authorizeManagement,
  authorizeRegistration,
  type RegistrarPorts,
} from "../flows/authorize-registration.ts";
import { removeClient, updateClient } from "../flows/manage-client.ts";
import type { AuditedRequest } from "../flows/refusal.ts";
import { type Registered, type RegistrationFailure, registerClient } from "../flows/register-client.ts";
import type { StatementPorts } from "../flows/software-statement.ts";
import { JSON_DEPTH_MAX } from "../limits/input.ts";
import type { BasePorts, Ports, RecordPorts } from "../ports.ts";
import type { RegisteredClient } from "../records.ts";
import { defined, err } from "../result.ts";
import { buildClientInformation, type ClientInformation } from "../spec/rfc7591.ts";
import { METADATA_REASONS, type MetadataFailure } from "../spec/rfc7591-errors.ts";
import { httpError, notFound, privateJson } from "./answers.ts";
import { admitBy, type BearerPorts, refuseBearer, type Wanted } from "./bearer.ts";
import { readJson } from "./body.ts";
import { type Handler, type HttpRequest, type HttpResponse, pathOf } from "./handler.ts";

const wantedBy = ({ settings }: BasePorts): Wanted => ({
  resource: `${settings().issuer}/register`,
});

type RegisterPorts = BearerPorts & RegistrarPorts & StatementPorts & Pick<Ports, "registrationTokens">;
type ManagePorts = BearerPorts & Pick<Ports, "registrations" | "registrationTokens">;

/** Clients that register themselves, such as those of the MCP SDKs, show this text to their user. */
const NO_TOKEN =
  "the request has no initial access token (Authorization: Bearer), which the operator of this server gives";

export function registerEndpoint(ports: RegisterPorts): Handler {
  return async (request, peer) => {
    if (ports.settings().registration.mode === "off") return notFound();
    const authorize = (bearer: Bearer) => authorizeRegistration(ports, bearer, peer.address);
    const wanted = { ...wantedBy(ports), missing: NO_TOKEN };
    const admitted = await admitBy(ports, request, peer, authorize, wanted);
    if (!admitted.ok) return admitted.error;
    const { caller, audited } = admitted.value;
    const json = await readMetadata(ports, audited, request);
    if (!json.ok) return json.error;
    // A browser names the origin of the page in every request of this kind, and a page cannot leave it out.
    const registrar = { ...caller, fromPage: request.headers.get("origin") !== null };
    const registered = await registerClient(ports, registrar, audited, json.value);
    // RFC7591-3.2-1: a new client is answered with 201.
    return registered.ok ? information(ports, 201, registered.value) : refuse(ports, registered.error);
  };
}

export function readRegistrationEndpoint(ports: ManagePorts): Handler {
  // RFC7592-2.1-1: the answer is the record as it is.
  return onClient(ports, async (client) => information(ports, 200, { client }));
}

export function updateRegistrationEndpoint(ports: ManagePorts & StatementPorts): Handler {
  return onClient(ports, async (client, audited, request) => {
    const json = await readMetadata(ports, audited, request);
    if (!json.ok) return json.error;
    const updated = await updateClient(ports, client, audited, json.value);
    return updated.ok ? information(ports, 200, updated.value) : refuse(ports, updated.error); // RFC7592-2.2-11
  });
}

export function deleteRegistrationEndpoint(ports: ManagePorts): Handler {
  return onClient(ports, async (client, audited) => {
    const removed = await removeClient(ports, client, audited);
    if (!removed.ok) return refuse(ports, removed.error);
    return { status: 204, headers: { "Cache-Control": "no-store", Pragma: "no-cache" }, body: "" }; // RFC7592-2.3-3
  });
}

type OnClient = (
  client: RegisteredClient,
  audited: AuditedRequest,
  request: HttpRequest,
) => Promise<HttpResponse>;

/** RFC7592-B-3: the request must carry the token of the client that the URL names. */
function onClient(ports: ManagePorts, answer: OnClient): Handler {
  return async (request, peer) => {
    if (ports.settings().registration.mode === "off") return notFound();
    const clientId = pathOf(request).split("/").at(-1) ?? "";
    const authorize = (bearer: Bearer) => authorizeManagement(ports, bearer, clientId);
    const admitted = await admitBy(ports, request, peer, authorize, wantedBy(ports));
    return admitted.ok ? answer(admitted.value.caller, admitted.value.audited, request) : admitted.error;
  };
}

/** RFC7591-3-1: a body that is not JSON is invalid metadata, one that is too large an HTTP error; both are counted. */
async function readMetadata(ports: RecordPorts, audited: AuditedRequest, request: HttpRequest) {
  const json = await readJson(request, JSON_DEPTH_MAX);
  if (json.ok) return json;
  ports.authFailures.note(audited, "body_unreadable");
  const { status, description } = json.error;
  return err(status === 413 ? httpError(json.error) : badRequest("invalid_client_metadata", description));
}

/** RFC7591-3.2.1-8, RFC7592-3-1, RFC7592-3-2, RFC7592-B-2: the answer is the whole record, and the URL and token to manage it. */
function information(
  { settings, registrationTokens }: Pick<Ports, "settings" | "registrationTokens">,
  status: number,
  registered: Registered,
): HttpResponse {
  const { client, secret } = registered;
  const { clientId, tokenGeneration } = client;
  const information = defined<ClientInformation>({
    clientId,
    issuedAtSeconds: client.issuedAtSeconds,
    metadata: client.metadata,
    secret,
    secretExpiresAtSeconds: client.secrets[0]?.expiresAtSeconds,
    registrationUri: `${settings().issuer}/register/${clientId}`,
    registrationToken: registrationTokens.of(clientId, tokenGeneration),
  });
  return privateJson(status, buildClientInformation(information));
}

/** RFC7591-3.2.2-2: texts are fixed; they name the wrong member but never its value. */
function refuse(ports: BasePorts & Pick<Ports, "nonces">, failure: RegistrationFailure): HttpResponse {
  const { kind, reason } = failure;
  switch (kind) {
    case "redirect_uri_invalid": // RFC7591-3.2.2-4
      return badRequest("invalid_redirect_uri", METADATA_REASONS[reason]);
    case "client_metadata_invalid": // RFC7591-3.2.2-5, RFC7592-2.2-13
      return badRequest("invalid_client_metadata", describe(failure));
    case "software_statement_invalid": // RFC7591-3.2.2-6
      return badRequest("invalid_software_statement", "the software statement is not valid");
    case "software_statement_unapproved": // RFC7591-3.2.2-7
      return badRequest("unapproved_software_statement", "the software statement is not approved here");
    case "token_invalid": // RFC7591-3.2.2-1
      return refuseBearer(ports, { kind, reason }, "Bearer", wantedBy(ports));
    case "clients_too_many":
      return privateJson(503, FULL, { "Retry-After": "3600" });
    default:
      return kind satisfies never;
  }
}

const FULL = {
  error: "temporarily_unavailable",
  error_description: "the server has no room for more clients",
};

const describe = ({ reason, accepted = [] }: MetadataFailure): string =>
  METADATA_REASONS[reason] + (accepted.length > 0 ? `: one of ${accepted.join(", ")} is` : "");

const badRequest = (error: string, description: string): HttpResponse =>
  privateJson(400, { error, error_description: description });
