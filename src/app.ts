/** The route table: every endpoint of the service. */

import { type Dress, notFound } from "./http/answers.ts";
import { auditCheckpointsEndpoint, auditEventsEndpoint } from "./http/audit.ts";
import {
  consentsEndpoint,
  deleteConsentEndpoint,
  getConsentEndpoint,
  putConsentEndpoint,
} from "./http/consents.ts";
import { makeCors } from "./http/cors.ts";
import { documentsOf } from "./http/discovery.ts";
import { explainEndpoint } from "./http/explain.ts";
import type { Handler, Peer } from "./http/handler.ts";
import { introspectEndpoint } from "./http/introspect.ts";
import { createJobEndpoint, jobEndpoint, jobsEndpoint } from "./http/jobs.ts";
import type { People, PeopleEndpoint } from "./http/people.ts";
import {
  auditLogEndpoint,
  auditLogsEndpoint,
  consistencyEndpoint,
  receiptEndpoint,
} from "./http/receipts.ts";
import {
  deleteRegistrationEndpoint,
  readRegistrationEndpoint,
  registerEndpoint,
  updateRegistrationEndpoint,
} from "./http/register.ts";
import { revocationsEndpoint } from "./http/revocations.ts";
import { revokeEndpoint } from "./http/revoke.ts";
import { type Routes, route } from "./http/router.ts";
import { signalsEndpoint } from "./http/signals.ts";
import { tokenEndpoint } from "./http/token.ts";
import { FETCH_TIMEOUT_MS } from "./limits/fetching.ts";
import type { Journal, KeySource, KeyWait, Ports, ProofQueue } from "./ports.ts";

/** `people`: what only users need, undefined where they have never signed in: there is nothing at its paths then. */
export function app(ports: Ports, people: () => People | undefined): Handler {
  const paged = route(routesOf(ports, people), dressPages(ports, people), peopleAt(ports, people)("unknown"));
  return makeCors(ports).serve(paged);
}

const peopleAt =
  (ports: Ports, people: () => People | undefined) =>
  (name: PeopleEndpoint): Handler =>
    forOneRequest(ports, (own) => people()?.endpoints[name](own) ?? (() => notFound()));

export function routesOf(ports: Ports, people: () => People | undefined): Routes {
  const { issuer } = ports.settings();
  const base = new URL(issuer).pathname.replace(/\/$/, "");
  const at = (endpoint: (ports: Ports) => Handler): Handler => forOneRequest(ports, endpoint);
  const ofPeople = peopleAt(ports, people);
  // Each reads the settings once, so it sees one snapshot anyway.
  const documents = Object.entries(documentsOf(issuer)).map(
    ([path, endpoint]) => [path, { GET: endpoint(ports) }] as const,
  );
  // PROD-4.1-1, PROD-9.1-1: the paths are directly below the issuer, without a version.
  return {
    [`${base}/token`]: { POST: at((own) => tokenEndpoint(own, people())) },
    [`${base}/introspect`]: { POST: at(introspectEndpoint) },
    [`${base}/revoke`]: { POST: at((own) => revokeEndpoint(own, people())) },
    [`${base}/revocations`]: { POST: at(revocationsEndpoint) },
    [`${base}/jobs`]: { GET: at(jobsEndpoint), POST: at(createJobEndpoint) },
    [`${base}/jobs/*`]: { GET: at(jobEndpoint) },
    [`${base}/signals/*`]: { POST: at(signalsEndpoint) },
    [`${base}/register`]: { POST: at(registerEndpoint) },
    [`${base}/register/*`]: {
      GET: at(readRegistrationEndpoint),
      PUT: at(updateRegistrationEndpoint),
      DELETE: at(deleteRegistrationEndpoint),
    },
    [`${base}/policy/explain`]: { POST: at(explainEndpoint) },
    [`${base}/consents`]: { GET: at(consentsEndpoint) },
    [`${base}/consents/*`]: {
      GET: at(getConsentEndpoint),
      PUT: at(putConsentEndpoint),
      DELETE: at(deleteConsentEndpoint),
    },
    [`${base}/audit/events`]: { GET: at(auditEventsEndpoint) },
    [`${base}/audit/checkpoints`]: { GET: at(auditCheckpointsEndpoint) },
    [`${base}/audit/receipts/*`]: { GET: at(receiptEndpoint) },
    [`${base}/audit/logs`]: { GET: at(auditLogsEndpoint) },
    [`${base}/audit/logs/*`]: { GET: at(auditLogEndpoint) },
    [`${base}/audit/consistency/*`]: { GET: at(consistencyEndpoint) },
    [base || "/"]: { GET: ofPeople("home") },
    [`${base}/logo/*`]: { GET: ofPeople("logo") },
    "/favicon.ico": { GET: ofPeople("home") },
    [`${base}/authorize`]: { GET: ofPeople("authorize") },
    [`${base}/authorize/review`]: { GET: ofPeople("review"), POST: ofPeople("decide") },
    [`${base}/ask`]: { GET: ofPeople("ask"), POST: ofPeople("decideAsk") },
    [`${base}/par`]: { POST: ofPeople("push") },
    [`${base}/signin`]: { GET: ofPeople("signIn") },
    [`${base}/callback/*`]: { GET: ofPeople("callback") },
    [`${base}/signout`]: { POST: ofPeople("signOut") },
    [`${base}/signed-out`]: { GET: ofPeople("signedOut") },
    [`${base}/account`]: { GET: ofPeople("account") },
    [`${base}/account/withdraw`]: { POST: ofPeople("takeBack") },
    [`${base}/backchannel-logout/*`]: { POST: ofPeople("backchannelLogout") },
    [`${base}/rp/jwks/*`]: { GET: ofPeople("providerKeys") },
    ...Object.fromEntries(documents),
  };
}

const dressPages =
  (ports: Ports, people: () => People | undefined): Dress =>
  (asked, answer) =>
    people()?.dress(ports)(asked, answer) ?? answer;

/** The form of an answer that no handler made: a page at the paths of pages, and readable where its handler's would be. */
export function dressAnswers(ports: Ports, people: () => People | undefined): Dress {
  const asPage = dressPages(ports, people);
  const cors = makeCors(ports);
  return (asked, answer) => cors.dress(asked, asPage(asked, answer));
}

/**
 * AUDIT-D-4: a request sees one settings snapshot from start to record, whatever is reloaded meanwhile. And nothing is
 * recorded for it after its deadline, when its client was told that it failed; nor does it wait longer to be
 * verified, or for a key.
 */
function forOneRequest(ports: Ports, endpoint: (ports: Ports) => Handler): Handler {
  return (request, peer) => {
    const settings = ports.settings();
    const journal: Journal = {
      record: (entry, _, held) => ports.journal.record(entry, peer.deadline, held),
    };
    const proofs: ProofQueue = { verify: (source, work) => ports.proofs.verify(source, work, peer) };
    const keys = keysUntil(ports, new RequestWait(ports, peer));
    return endpoint({ ...ports, ...keys, journal, proofs, settings: () => settings })(request, peer);
  };
}

/** How long a request waits for keys. */
class RequestWait implements KeyWait {
  readonly #ports: Pick<Ports, "throttle">;
  readonly #peer: Peer;
  #fetched: AbortSignal | undefined;

  constructor(ports: Pick<Ports, "throttle">, peer: Peer) {
    this.#ports = ports;
    this.#peer = peer;
  }

  get deadline(): AbortSignal {
    return this.#peer.deadline;
  }

  /** MCPC-D-21: the time runs from the first fetch on, for as long as one may take, so that clients do not give up first. */
  get fetched(): AbortSignal {
    this.#fetched ??= AbortSignal.timeout(FETCH_TIMEOUT_MS);
    return this.#fetched;
  }

  get gone(): Peer["gone"] {
    return this.#peer.gone;
  }

  get suspect(): boolean {
    return this.#ports.throttle.failedLately(this.#peer.address);
  }
}

/** The sources of keys, for a request that waits for an unknown one until this. */
function keysUntil(
  ports: Ports,
  until: KeyWait,
): Pick<Ports, "bundles" | "issuers" | "clientKeys" | "fetchedKeys" | "clientDocuments"> {
  const { bundles, issuers, clientKeys, fetchedKeys, clientDocuments } = ports;
  const bound = (keys: KeySource): KeySource => ({ key: (name, header) => keys.key(name, header, until) });
  return {
    bundles: { ...bound(bundles), anchors: (trustDomain) => bundles.anchors(trustDomain, until) },
    issuers: bound(issuers),
    clientKeys: bound(clientKeys),
    clientDocuments: { find: (url, source) => clientDocuments.find(url, source, until) },
    fetchedKeys: { key: (where, header, source) => fetchedKeys.key(where, header, source, until) },
  };
}
