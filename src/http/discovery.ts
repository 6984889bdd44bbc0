/** GET /.well-known/… and GET /jwks: documents that are public, cacheable, and the same for all callers. */
import { grantTypesOn } from "../flows/order/grant-type.ts";
import { PUBLISHED_SECONDS } from "../limits/connections.ts";
import { API_PATHS, type ApiPath, apiAudience, consentsAudience, OWN_PATHS } from "../policy/own-target.ts";
import { issuedTo } from "../policy/products.ts";
import { allowsRefresh, type Target } from "../policy/rules.ts";
import type { OwnKeys, Ports } from "../ports.ts";
import { defined } from "../result.ts";
import { certificateBase } from "../settings/audiences.ts";
import { servedMethods } from "../settings/authentication-methods.ts";
import type { Settings } from "../settings/settings.ts";
import { ID_JAG_PROFILE } from "../spec/id-jag.ts";
import { OFFLINE_ACCESS } from "../spec/rfc6749.ts";
import { buildMetadata, metadataPaths, type Offer } from "../spec/rfc8414.ts";
import { ID_JAG, JWT } from "../spec/rfc8693.ts";
import { ASSERTION_ALGORITHMS } from "../spec/rfc8725.ts";
import { splitField } from "../spec/rfc9110.ts";
import { buildResourceMetadata, type ProtectedResource, resourceMetadataPath } from "../spec/rfc9728.ts";
import { transmitterMetadata, transmitterPath } from "../spec/ssf.ts";
import { takesWorkloadGrants } from "../spec/workload-grant.ts";
import { notFound } from "./answers.ts";
import { type Handler, type HttpRequest, type HttpResponse, pathOf } from "./handler.ts";

type DiscoveryPorts = Pick<Ports, "settings" | "hash"> &
  Record<"signer" | "grantSigner" | "signalSigner", OwnKeys>;

/** The public documents of this server, by their paths. */
export const documentsOf = (
  issuer: string,
): Readonly<Record<string, (ports: DiscoveryPorts) => Handler>> => ({
  [`${basePath(issuer)}/jwks`]: jwksEndpoint(new PublicDocument()),
  [`${basePath(issuer)}/openapi.json`]: descriptionEndpoint(new PublicDocument()),
  ...Object.fromEntries(metadataPaths(issuer).map((path) => [path, metadataEndpoint(new PublicDocument())])),
  [transmitterPath(issuer)]: transmitterEndpoint,
  [resourceMetadataPath(apiAudience(issuer))]: ownEndpoint(apiAudience(issuer)),
  ...Object.fromEntries(
    OWN_PATHS.map((path) => [resourceMetadataPath(issuer + path), ownEndpoint(issuer + path, path)]),
  ),
  [resourceMetadataPath(consentsAudience(issuer))]: consentsMetadataEndpoint,
});

const basePath = (issuer: string): string => new URL(issuer).pathname.replace(/\/$/, "");

/**
 * HTTP-D-68: generated from the schemas that validate and from the table of endpoints, and loaded once it is asked for. What
 * is well known stands at the host, with the path of the issuer behind it (RFC 8414 3.1, RFC 9728 3.1).
 */
const descriptionEndpoint =
  (document: PublicDocument) =>
  (ports: DiscoveryPorts): Handler =>
  async (request) => {
    const { default: description } = await import("./openapi.json", { with: { type: "json" } });
    const { issuer } = ports.settings();
    const [base, { origin }] = [basePath(issuer), new URL(issuer)];
    const make = (): object => ({
      ...description,
      servers: [{ url: issuer }],
      paths: Object.fromEntries(
        Object.entries(description.paths).map(([path, item]) =>
          base !== "" && WELL_KNOWN.test(path)
            ? [path.replace(WELL_KNOWN, `$&${base}`), { servers: [{ url: origin }], ...item }]
            : [path, item],
        ),
      ),
    });
    return publicJson(request, METADATA, document.write(ports, [issuer], make));
  };

const WELL_KNOWN = /^\/\.well-known\/[^/]+/;

/** RFC 8414 3: what is published derives from the same tables as what is dispatched. */
const metadataEndpoint =
  (document: PublicDocument) =>
  (ports: DiscoveryPorts): Handler =>
  (request) => {
    const settings = ports.settings();
    const isOpenId = pathOf(request).includes("openid-configuration");
    const make = (): object => buildMetadata(offerOf(settings, isOpenId));
    return publicJson(request, METADATA, document.write(ports, [settings], make));
  };

function offerOf(settings: Settings, isOpenId: boolean): Offer {
  const { issuer, trustedIssuers, policy, registration, signIn } = settings;
  const authorization = signIn === undefined ? undefined : true;
  const targets = [...policy.targets.values()];
  // The scopes of a partner are requested at the partner. MCPC-D-14: clients of people ask for every scope that is
  // listed, so where there are such clients only their scopes are.
  // TXN-D-1: purposes are asked for inside a trust domain, whose workloads know them.
  const isListed = (target: Target): boolean =>
    issuedTo(target) === "access_token" && (target.people || signIn === undefined);
  const scopes = new Set(targets.flatMap((target) => (isListed(target) ? target.scopes : [])));
  // REFRESH-D-2, MCP-O.10-2: the scope is listed where it can give clients of people anything, so that they ask for
  // it.
  const refreshes = [...policy.rules.values()].some(allowsRefresh);
  if (authorization && refreshes) scopes.add(OFFLINE_ACCESS);
  const partners = targets.some((target) => target.partner !== undefined);
  // RFC8414-D-1: RS256 is required in the list, and the others are those of access tokens.
  const algorithms = new Set([
    "RS256",
    ...targets.flatMap((one) => (issuedTo(one) === "access_token" ? [one.alg] : [])),
  ]);
  const profiles = [...trustedIssuers.values()].flatMap(({ grants }) => grants?.profiles ?? []);
  return defined<Offer>({
    issuer,
    grantTypes: grantTypesOn(settings),
    // WAG-5-2: clients that look for it find that a platform's grant needs no authentication beside it.
    authMethods: [
      ...new Set([...servedMethods(settings), ...(takesWorkloadGrants(settings.platforms) ? ["none"] : [])]),
    ],
    signingAlgorithms: ASSERTION_ALGORITHMS,
    proofAlgorithms: settings.dpop.algorithms,
    mtlsBase: certificateBase(settings),
    scopes: [...scopes].sort(),
    detailTypes: [...policy.details.keys()].sort(),
    registration: registration.mode !== "off", // PROD-4.4-2
    clientDocuments: settings.clientDocuments !== undefined, // PROD-4.4-1, CIMD-6-1
    requestedTokenTypes: partners ? [JWT, ID_JAG] : [], // IDC-3-1, IDJAG-7.1-1
    // IDJAG-7.2-2, EMA-6-1, IDJAG-9.5-1: grant profiles are published without naming the trusted issuers.
    grantProfiles: profiles.includes("id-jag") ? [ID_JAG_PROFILE] : [],
    authorization,
    deferral: settings.deferral && true,
    // RTE-D-9: where refresh tokens can be issued at all.
    refreshEnds: authorization && refreshes && settings.tellsRefreshEnds,
    certificates: settings.takesCertificates,
    openIdAlgorithms: isOpenId ? [...algorithms] : undefined,
  });
}

const jwksEndpoint =
  (document: PublicDocument) =>
  (ports: DiscoveryPorts): Handler =>
  (request) => {
    // PROD-4.4-4: the document has the keys of access tokens, of grants and of security events.
    const signers = [ports.signer, ports.grantSigner, ports.signalSigner];
    const keys = signers.flatMap((one) => one.published());
    return publicJson(
      request,
      keySetFor(ports),
      document.write(ports, keys, () => ({ keys })),
    );
  };

/**
 * PRM-D-1: the metadata come from the entry of the registry against which tokens are checked; RFC9728-3.3-4: they are
 * for one endpoint, or for all.
 */
const ownEndpoint =
  (resource: string, path?: ApiPath) =>
  (ports: DiscoveryPorts): Handler =>
  (request) => {
    const { issuer, policy } = ports.settings();
    const scopes = policy.targets.get(resource)?.scopes ?? [];
    return resourceJson(ports, request, {
      resource, // PRM-D-3
      authorizationServers: [issuer], // PRM-D-4
      scopes: path === undefined ? scopes : scopes.filter((scope) => scope === API_PATHS[path]),
      name: "Mandate administration",
    });
  };

/**
 * PRM-D-1: the metadata of the consents that users manage with a token straight from their issuer; not found without
 * such issuers.
 */
function consentsMetadataEndpoint(ports: DiscoveryPorts): Handler {
  return (request) => {
    const { issuer } = ports.settings();
    const authorizationServers = consentServers(ports);
    if (authorizationServers.length === 0) return notFound();
    return resourceJson(ports, request, {
      resource: consentsAudience(issuer),
      authorizationServers,
      scopes: [],
      name: "Mandate consents",
    });
  };
}

/** SSF-7.2-1: where there are streams. */
function transmitterEndpoint(ports: DiscoveryPorts): Handler {
  return (request) => {
    const { issuer, streams } = ports.settings();
    if (streams.size === 0) return notFound();
    return publicJson(request, METADATA, writeDocument(ports, transmitterMetadata(issuer)));
  };
}

/** The issuers of users who may manage their consents here, without those that are disabled. */
export function consentServers({ settings }: Pick<Ports, "settings">): readonly string[] {
  const { consentIssuers, trustedIssuers } = settings();
  return [...consentIssuers.keys()].filter((issuer) => trustedIssuers.has(issuer));
}

/** RFC9728-7.10-1: the document may be cached, as all documents here. */
function resourceJson(
  ports: DiscoveryPorts,
  request: HttpRequest,
  offer: Omit<ProtectedResource, "proofAlgorithms">,
): HttpResponse {
  const proofAlgorithms = ports.settings().dpop.algorithms;
  return publicJson(
    request,
    METADATA,
    writeDocument(ports, buildResourceMetadata({ ...offer, proofAlgorithms })),
  );
}

const METADATA = { type: "application/json", seconds: PUBLISHED_SECONDS };

/** The announcement of a key waits for as long as a verifier may keep the document. */
export const keySetFor = ({ settings }: Pick<Ports, "settings">) => ({
  type: "application/jwk-set+json",
  seconds: settings().keys.cacheSeconds,
});

type Written = { text: string; etag: string };

export function writeDocument({ hash }: Pick<Ports, "hash">, body: object): Written {
  const text = JSON.stringify(body);
  return { text, etag: `"${hash.sha256(text)}"` };
}

/** A document that is written anew only where a part changed of which it is made: everyone may ask for it at any rate. */
class PublicDocument {
  #parts: readonly unknown[] = [];
  #written: Written | undefined;

  write(ports: Pick<Ports, "hash">, parts: readonly unknown[], make: () => object): Written {
    const isSame = parts.length === this.#parts.length && parts.every((one, at) => one === this.#parts[at]);
    if (this.#written === undefined || !isSame) {
      this.#written = writeDocument(ports, make());
      this.#parts = parts;
    }
    return this.#written;
  }
}

export function publicJson(
  request: HttpRequest,
  { type, seconds }: { type: string; seconds: number },
  { text, etag }: Written,
): HttpResponse {
  const headers = {
    "Content-Type": type,
    "Cache-Control": `public, max-age=${seconds}`,
    ETag: etag,
  };
  // RFC 9110 13.1.2: the field is a list of tags, of which a weak one stands for the same document.
  const kept = splitField(request.headers.get("if-none-match") ?? "", ",");
  const known = kept.some((one) => one === "*" || one === etag || one === `W/${etag}`);
  return known ? { status: 304, headers, body: "" } : { status: 200, headers, body: text };
}
