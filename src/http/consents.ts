/** PUT, GET, DELETE /consents/{id} and GET /consents: a user's own consents, or all of them for an administrator. */
import {
  authorizeConsents,
  type ChangeFailure,
  type ConsentFilter,
  type ConsentPorts,
  consentState,
  type Expected,
  getConsent,
  listConsents,
  type Manager,
  PAGE_MAX,
  putConsent,
  type UserPorts,
  withdrawConsent,
} from "../flows/consents.ts";
import { type ConsentJson, consentJson } from "../flows/record-json.ts";
import { API_PATHS, apiAudience, consentsAudience } from "../policy/own-target.ts";
import type { StoredConsent } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { type HttpRefusal, httpError, notFound, privateJson } from "./answers.ts";
import { type AdmitPorts, type Admitted, admitBy, type Wanted } from "./bearer.ts";
import { readJson } from "./body.ts";
import { consentServers } from "./discovery.ts";
import { type Handler, type HttpRequest, type HttpResponse, type Peer, pathOf } from "./handler.ts";

type ManagerPorts = AdmitPorts & UserPorts & Parameters<typeof consentState>[0];

const shownAs = async (ports: ManagerPorts, consent: StoredConsent): Promise<ConsentJson> =>
  consentJson(consent, await consentState(ports, consent));

export function consentsEndpoint(ports: ManagerPorts & ConsentPorts): Handler {
  return async (request, peer) => {
    const admitted = await admitManager(ports, request, peer);
    if (!admitted.ok) return admitted.error;
    const { caller, audited } = admitted.value;
    const filter = readFilter(new URL(request.url).searchParams);
    if (filter === undefined) return httpError(MALFORMED_FILTER);
    const consents = await listConsents(ports, caller, audited, filter);
    const next = consents.length === filter.limit ? consents.at(-1)?.id : undefined;
    const shown = await Promise.all(consents.map((one) => shownAs(ports, one)));
    return privateJson(200, defined<ConsentPage>({ consents: shown, next }));
  };
}

export function getConsentEndpoint(ports: ManagerPorts & ConsentPorts): Handler {
  return onConsent(ports, async ({ caller, audited }, id) => {
    const consent = await getConsent(ports, caller, audited, id);
    return consent === undefined
      ? notFound()
      : privateJson(200, await shownAs(ports, consent), { ETag: tag(consent) });
  });
}

export function putConsentEndpoint(ports: ManagerPorts & ConsentPorts): Handler {
  return onConsent(ports, async ({ caller, audited }, id, request) => {
    const expected = readExpected(request);
    if (!expected.ok) return httpError(expected.error);
    const json = await readJson(request);
    if (!json.ok) return httpError(json.error);
    const put = await putConsent(ports, caller, audited, { id, json: json.value, expected: expected.value });
    if (!put.ok) return httpError(REFUSED[put.error.kind]);
    const { consent, created } = put.value;
    return privateJson(created ? 201 : 200, await shownAs(ports, consent), { ETag: tag(consent) });
  });
}

export function deleteConsentEndpoint(ports: ManagerPorts & ConsentPorts): Handler {
  return onConsent(ports, async ({ caller, audited }, id, request) => {
    const expected = readExpected(request);
    if (!expected.ok) return httpError(expected.error);
    const withdrawn = await withdrawConsent(ports, caller, audited, { id, expected: expected.value });
    if (!withdrawn.ok) return httpError(REFUSED[withdrawn.error.kind]);
    return { status: 204, headers: { "Cache-Control": "no-store" }, body: "" };
  });
}

/** A user's token is led to the issuers of users; without such issuers only administrators come here. */
function admitManager(ports: ManagerPorts, request: HttpRequest, peer: Peer) {
  const { issuer } = ports.settings();
  const wanted: Wanted =
    consentServers(ports).length > 0
      ? { resource: consentsAudience(issuer) }
      : { resource: apiAudience(issuer), scope: API_PATHS["/consents"] };
  return admitBy(ports, request, peer, (bearer) => authorizeConsents(ports, bearer), wanted);
}

type OnConsent = (admitted: Admitted<Manager>, id: string, request: HttpRequest) => Promise<HttpResponse>;

function onConsent(ports: ManagerPorts, serve: OnConsent): Handler {
  return async (request, peer) => {
    const admitted = await admitManager(ports, request, peer);
    if (!admitted.ok) return admitted.error;
    const id = pathOf(request).split("/").at(-1) ?? "";
    return /^[A-Za-z0-9_-]{1,64}$/.test(id) ? serve(admitted.value, id, request) : notFound();
  };
}

/** `next` is the `after` of the next page. */
type ConsentPage = { consents: readonly ConsentJson[]; next?: string };

const tag = ({ version }: StoredConsent): string => `"${version}"`;

/** `If-None-Match: *` asks for a new consent, `If-Match: "3"` for that version; every other condition is refused. */
function readExpected(request: HttpRequest): Result<Expected, HttpRefusal> {
  const match = request.headers.get("if-match");
  const noneMatch = request.headers.get("if-none-match");
  if (match === null && noneMatch === null) return ok(undefined);
  if (match === null) return noneMatch === "*" ? ok("none") : err(MALFORMED_CONDITION);
  const version = /^"([1-9][0-9]{0,8})"$/.exec(match)?.[1];
  return version === undefined || noneMatch !== null ? err(MALFORMED_CONDITION) : ok(Number(version));
}

const FILTERS = ["iss", "sub", "after", "limit"];

function readFilter(query: URLSearchParams): ConsentFilter | undefined {
  const names = [...query.keys()];
  if (new Set(names).size < names.length || names.some((name) => !FILTERS.includes(name))) return undefined;
  const iss = query.get("iss");
  const sub = query.get("sub");
  const afterId = query.get("after");
  const limit = query.get("limit") ?? String(PAGE_MAX);
  if ((iss === null) !== (sub === null)) return undefined;
  if (afterId !== null && !/^[A-Za-z0-9_-]{1,64}$/.test(afterId)) return undefined;
  if (!/^[1-9][0-9]{0,2}$/.test(limit) || Number(limit) > PAGE_MAX) return undefined;
  return defined<ConsentFilter>({
    limit: Number(limit),
    origin: iss === null || sub === null ? undefined : { iss, sub },
    afterId: afterId ?? undefined,
  });
}

const MALFORMED_FILTER: HttpRefusal = { status: 400, description: "the query is malformed" };
const MALFORMED_CONDITION: HttpRefusal = {
  status: 400,
  description: "the condition on the version is malformed",
};

/** POLICY-D-23: who consents for a user by API does not learn that they are disabled. */
const SUBJECT_REFUSED: HttpRefusal = {
  status: 403,
  description: "the caller may not consent for this subject",
};

const REFUSED: Record<ChangeFailure["kind"], HttpRefusal> = {
  consent_malformed: { status: 400, description: "the consent is malformed" },
  consent_actor_malformed: { status: 400, description: "the actor is not a workload or client" },
  consent_target_unknown: { status: 400, description: "a target is not known" },
  consent_scope_malformed: { status: 400, description: "the scope is malformed" },
  consent_scope_unknown: { status: 400, description: "no target knows one of the scopes" },
  consent_details_refused: {
    status: 400,
    description: "the authorization_details are not those of its targets",
  },
  consent_expired: { status: 400, description: "the expiry is in the past" },
  subject_refused: SUBJECT_REFUSED,
  subject_disabled: SUBJECT_REFUSED,
  actor_is_caller: { status: 403, description: "the actor of a consent cannot be its caller" },
  id_taken: { status: 409, description: "the id belongs to another consent, or to one that was withdrawn" },
  version_differs: { status: 412, description: "the consent has another version" },
  not_found: { status: 404, description: "there is no such consent in force" },
};
