/** Configured clients: maps the names of the file, reads the files that it names, and reports problems by path. */
import { createHash } from "node:crypto";
import type * as v from "valibot";
import { CLIENT_SECRET_BITS_MIN, CLIENT_SECRET_CHARS_MIN } from "../limits/clients.ts";
import { meant } from "../policy/nearest.ts";
import { apiNames } from "../policy/own-target.ts";
import { defined } from "../result.ts";
import type { MethodWith } from "../settings/authentication-methods.ts";
import {
  bindsBy,
  type CredentialFailure,
  detailTypes,
  type KnownClient,
  type KnownCredentials,
  makeClient,
} from "../settings/client.ts";
import { clientOfDocument, type DocumentSettings, parseClientDocument } from "../settings/client-metadata.ts";
import type { Client, SecretDigest, Voucher } from "../settings/settings.ts";
import { parseDocumentUrl } from "../spec/cimd.ts";
import { CLIENT_ID_PREFIX } from "../spec/rfc7591.ts";
import { isAccepted } from "../spec/rfc8252.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { SubjectParameter } from "../spec/rfc8705.ts";
import type { ClientFile } from "./client-schema.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";

type Pinned = Extract<v.InferOutput<typeof ClientFile>, { document: unknown }>;
type From = Exclude<v.InferOutput<typeof ClientFile>, Pinned>;
type KeysFile = Omit<Extract<From, { method: MethodWith<{ credential: "keys" }> }>, "method">;

/** `documents` are the settings by which the documents of clients are judged. */
export function readClients(
  config: ConfigFile,
  documents: DocumentSettings,
  reader: Reader,
): ReadonlyMap<string, Client> {
  const clients = new Map<string, Client>();
  // A default target applies to grants that issue access tokens, and partners get only authorization grants.
  const servers = config.targets.filter((target) => !("partner" in target || "transaction" in target));
  const targetNames = new Set([...apiNames(config.issuer), ...servers.flatMap(({ names }) => names)]);
  for (const [clientId, from] of Object.entries(config.clients)) {
    const path = `clients.${clientId}`;
    if (from.defaultTarget !== undefined && !targetNames.has(from.defaultTarget)) {
      reader.problem(
        `${path}.defaultTarget`,
        `is not the name of a resource server among the targets${meant(from.defaultTarget, targetNames)}`,
      );
    }
    if ("document" in from) {
      const client = readPinned(path, clientId, from, documents, reader);
      if (client !== undefined) clients.set(clientId, client);
      continue;
    }
    // PROD-2.1-2: a SPIFFE ID is proven by the client and cannot be configured, and neither can a URL without its document.
    if (!/^[\x21-\x7e]+$/.test(clientId) || clientId.includes("://")) {
      reader.problem(
        path,
        "is not a plain client_id: printable ASCII without spaces, and no URL or SPIFFE ID",
      );
    }
    if (clientId.startsWith(CLIENT_ID_PREFIX)) {
      reader.problem(
        path,
        `begins with ${CLIENT_ID_PREFIX}, which is reserved for ids that the server makes`,
      );
    }
    if (from.actorAccessToken && (from.workload === undefined || "spiffeId" in from)) {
      reader.problem(
        `${path}.actorAccessToken`,
        'is for a client that was given a "workload" and has no SVID',
      );
    }
    for (const [index, uri] of from.redirectUris.entries()) {
      if (isAccepted(uri, config.authorize)) continue;
      reader.problem(
        `${path}.redirectUris.${index}`,
        "is not accepted: list it in authorize.privateUse, or see authorize.localhost",
      );
    }
    if (from.dpop_bound_access_tokens && config.dpop.algorithms.length === 0) {
      reader.problem(`${path}.dpop_bound_access_tokens`, "needs DPoP, which dpop.algorithms turns off");
    }
    const client = readClient(path, clientId, from, config, reader);
    if (client !== undefined) clients.set(clientId, client);
  }
  return clients;
}

/**
 * MCPC-D-17: the copy is held to the rules of every document, but its keys may be anywhere, as the operator names them.
 */
function readPinned(
  path: string,
  clientId: string,
  { document, defaultTarget }: Pinned,
  documents: DocumentSettings,
  reader: Reader,
): Client | undefined {
  const url = parseDocumentUrl(clientId);
  if (!url.ok) return reader.problem(path, `is not the URL of a metadata document (${url.error.kind})`);
  const metadata = parseClientDocument(clientId, JSON.stringify(document));
  if (!metadata.ok) {
    return reader.problem(`${path}.document`, `is not a valid metadata document (${metadata.error.kind})`);
  }
  const clientDocuments = { ...documents.clientDocuments, foreignKeys: true };
  const client = clientOfDocument(url.value, metadata.value, { ...documents, clientDocuments });
  if (!client.ok) {
    return reader.problem(
      `${path}.document`,
      `describes a client that is not served here (${client.error.reason})`,
    );
  }
  // CIMD-7.1-2: the client is known by the operator, whatever the form of its `client_id`.
  return defined<Client>({ ...client.value, source: "configuration", defaultTarget });
}

function readClient(
  path: string,
  clientId: string,
  from: From,
  config: ConfigFile,
  reader: Reader,
): Client | undefined {
  const { method, grantTypes, workload, actorAccessToken, defaultTarget, redirectUris } = from;
  const credentials = readCredentials(path, from, config, reader);
  if (credentials === undefined) return undefined;
  const client = makeClient(
    defined<KnownClient>({
      clientId,
      source: "configuration",
      grantTypes,
      workload,
      actorAccessToken: actorAccessToken || undefined,
      defaultTarget,
      assertionAudience: "assertionAudience" in from ? from.assertionAudience : undefined,
      bindsBy: bindsBy(from),
      detailTypes: detailTypes(from),
      redirectUris: redirectUris.length > 0 ? redirectUris : undefined,
      method,
      credentials,
    }),
  );
  return client.ok ? client.value : report(path, client.error, reader);
}

/** Undefined if a problem was reported. */
function readCredentials(
  path: string,
  from: From,
  config: ConfigFile,
  reader: Reader,
): KnownCredentials | undefined {
  if ("secrets" in from) return { secrets: readSecrets(path, from, reader) };
  if (from.method === "none") {
    if (config.signIn !== undefined) return {};
    return reader.problem(`${path}.method`, "is for clients that ask users, and no signIn is configured");
  }
  if ("spiffeId" in from) return { spiffeId: from.spiffeId };
  if ("ca" in from) return { subject: from, anchors: reader.readAnchors(`${path}.ca`, from.ca) };
  const { jwks, jwksUri, vouchedBy }: KeysFile = from;
  if ([jwks, jwksUri, vouchedBy].filter((one) => one !== undefined).length !== 1) {
    return reader.problem(path, "requires exactly one of jwks, jwksUri and vouchedBy");
  }
  return defined<KnownCredentials>({
    jwks: jwks as JsonObject | undefined,
    jwksUri: jwksUri && reader.readRemote(`${path}.jwksUri`, jwksUri),
    vouchers: vouchedBy && readVouchers(`${path}.vouchedBy`, vouchedBy, config, reader),
  });
}

type WithSecrets = Extract<From, { secrets: unknown }>;

function readSecrets(
  path: string,
  { method, secrets }: Pick<WithSecrets, "method" | "secrets">,
  reader: Reader,
): readonly SecretDigest[] {
  return secrets.flatMap((one, index) => {
    const at = `${path}.secrets.${index}`;
    const value = reader.readSecret(at, one);
    if (value === undefined) return [];
    // RFC6749-2.3.1-8: a valid proof is never refused for wrong ones before it, so guessing is bounded by entropy alone.
    if (isGuessable(value)) {
      reader.weakness(
        at,
        `is easy to guess: a client secret has at least ${CLIENT_SECRET_CHARS_MIN} random characters, such as those of openssl rand -hex 32`,
      );
    }
    // RFC 6749 2.3.1: a secret is form-encoded before it is sent; one that is not is decoded all the same.
    if (method !== "client_secret_post" && /[^!-~]|[%+]/.test(value)) {
      reader.warnings.push(
        `${at}: has characters (%, + or beyond printable ASCII) that a client must form-encode in HTTP Basic, and many do not: make another one, such as by openssl rand -hex 32`,
      );
    }
    const digest = createHash("sha256").update(value, "utf8").digest("base64url");
    if (typeof one === "string" || one.expires === undefined) return [{ digest }];
    const expiresAtSeconds = readTime(one.expires);
    if (expiresAtSeconds !== undefined) return [{ digest, expiresAtSeconds }];
    reader.problem(`${at}.expires`, "is not a valid date, or its time zone has no minutes");
    return [];
  });
}

/**
 * Judged by what a generator of just these characters would give, so that a small alphabet is no fault. A pair of
 * neighbours that comes again counts once, so that a repeated word is worth no more than the word.
 */
function isGuessable(secret: string): boolean {
  const characters = [...secret];
  const pairs = new Set(characters.map((one, index) => one + (characters[index + 1] ?? "")));
  const bits = pairs.size * Math.log2(new Set(characters).size);
  return characters.length < CLIENT_SECRET_CHARS_MIN || bits < CLIENT_SECRET_BITS_MIN;
}

function readVouchers(
  path: string,
  vouchedBy: NonNullable<KeysFile["vouchedBy"]>,
  { trustedIssuers }: ConfigFile,
  reader: Reader,
): readonly Voucher[] {
  return vouchedBy.map(({ issuer, claims }, index) => {
    if (trustedIssuers[issuer]?.vouches === undefined) {
      reader.problem(`${path}.${index}.issuer`, 'is not a trusted issuer that "vouches"');
    }
    // RFC7523-5-1: an issuer vouches by certain tokens only, never by every token that it signs.
    if (Object.keys(claims).length === 0) {
      reader.problem(
        `${path}.${index}.claims`,
        "names no claim, so that every token of the issuer would match",
      );
    }
    return { issuer, claims: new Map(Object.entries(claims)) };
  });
}

const SUBJECTS: Readonly<Record<SubjectParameter, string>> = {
  tls_client_auth_subject_dn: "is not a distinguished name such as CN=client,O=Example",
  tls_client_auth_san_dns: "is not a DNS name without wildcards",
  tls_client_auth_san_uri:
    "is not an absolute URI, or is a SPIFFE ID, for which there is the method spiffe_x509",
  tls_client_auth_san_ip: "is not an IP address in its usual form",
  tls_client_auth_san_email: "is not an email address",
};

function report(path: string, { kind, cause, parameter }: CredentialFailure, reader: Reader): undefined {
  if (parameter !== undefined) return reader.problem(`${path}.${parameter}`, SUBJECTS[parameter]);
  const why = cause === undefined ? "" : ` (${cause})`;
  switch (kind) {
    case "keys_unusable":
      return reader.problem(`${path}.jwks`, `has no usable public key${why}`);
    case "certificates_missing":
      return reader.problem(`${path}.jwks`, "is not a set of keys that each have their certificate in x5c");
    case "subject_refused":
      return reader.problem(path, `requires exactly one valid tls_client_auth_* parameter${why}`);
    case "authorities_missing":
      // The reader has reported what is wrong with the file.
      return undefined;
  }
}

/** Undefined for a day that does not exist, because the platform reads the 31st of February as the 3rd of March. */
function readTime(text: string): number | undefined {
  const day = text.slice(0, 10);
  const [atMs, dayMs] = [Date.parse(text), Date.parse(day)];
  if (Number.isNaN(atMs) || Number.isNaN(dayMs)) return undefined;
  return new Date(dayMs).toISOString().startsWith(day) ? atMs / 1000 : undefined;
}
