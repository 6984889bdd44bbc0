/**
 * The only outbound requests of this server: GET, or POST to the operator's sink, over HTTPS to a checked address, with
 * one deadline and a limit in bytes; without redirects, proxies, cookies, compression and connection reuse.
 */
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { request } from "node:https";
import type { LookupFunction } from "node:net";
import { isIP } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { connect } from "node:tls";
import { HEADER_BYTES_MAX } from "../../limits/connections.ts";
import {
  FETCH_ADDRESSES_MAX,
  FETCH_TIMEOUT_MS,
  FETCHED_AROUND_BYTES_MAX,
  FETCHED_SECONDS,
  FETCHED_SECONDS_MAX,
  FETCHED_SECONDS_MIN,
} from "../../limits/fetching.ts";
import { defined } from "../../result.ts";
import { mayConnect } from "../../settings/outbound.ts";
import type { Reach, RemoteDocument } from "../../settings/settings.ts";
import type { FetchUrl, UrlFailure } from "../../spec/rfc3986.ts";
import { parseFetchUrl } from "../../spec/rfc3986.ts";
import { decodeUtf8 } from "../../spec/rfc8259.ts";

/** The bounds within which a document stays fresh, whatever it says itself. */
export const FRESH_BOUNDS = {
  min: FETCHED_SECONDS_MIN,
  max: FETCHED_SECONDS_MAX,
  otherwise: FETCHED_SECONDS,
};

/** Each cause has a reason of its own, for the audit trail. */
export type FetchReason =
  | UrlFailure["kind"]
  | "name_unresolved"
  | "address_refused"
  | "peer_refused"
  | "connection_failed"
  | "certificate_expired"
  | "certificate_not_yet_valid"
  | "certificate_name_wrong"
  | "certificate_untrusted"
  | "tls_failed"
  | "endpoint_refused"
  | "protocol"
  | "headers_too_large"
  | "redirected"
  | "status"
  | "encoded"
  | "too_large"
  | "broke_off"
  | "not_utf8"
  | "timeout";

/** A failed fetch. The message is for our log and never sent to a caller. */
export class FetchFailed extends Error {
  override name = "FetchFailed";
  readonly reason: FetchReason;
  /** The status of a response that was refused for it. */
  readonly status: number | undefined;

  constructor(reason: FetchReason, message: string, status?: number) {
    super(message);
    this.reason = reason;
    this.status = status;
  }
}

/** A response: its content and some header fields as received, empty if absent. */
export type Fetched = {
  status: number;
  /** Status 304: the document is still the one that `ifNoneMatch` names, and `text` is empty. */
  notModified: boolean;
  text: string;
  contentType: string;
  cacheControl: string;
  age: string;
  expires: string;
  date: string;
  /** Present if it is valid and short enough to be sent as `ifNoneMatch`. */
  etag?: string;
};

/** Returns all addresses of a host name. */
export type Resolver = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * Checks the peer's certificates (DER, leaf first); returns why the peer is refused, or undefined if it is accepted.
 */
export type Judge = (presented: readonly Uint8Array[]) => string | undefined;

export type FetchOptions = {
  timeoutMs?: number;
  resolver?: Resolver;
  /** Authenticates the peer instead of the public authorities and the host name, before the request is sent. */
  judge?: Judge;
  /** The `etag` of the copy that the caller has. */
  ifNoneMatch?: string;
  post?: Posted;
};

/** The body of a POST request; `errors`: statuses whose content says what was wrong, and is read for that. */
export type Posted = {
  contentType: string;
  text: string;
  authorization?: string;
  errors?: readonly number[];
};

const resolveBySystem: Resolver = (hostname) => lookup(hostname, { all: true });

/** Fetches a document of at most `bytesMax`, in UTF-8; throws FetchFailed for every failure. */
export async function fetchDocument(
  document: RemoteDocument,
  bytesMax: number,
  options: FetchOptions = {},
): Promise<Fetched> {
  const url = parseFetchUrl(document.url);
  if (!url.ok) throw new FetchFailed(url.error.kind, "the URL is not an https URL in canonical form");
  return fetchParsed(url.value, document, bytesMax, options);
}

export async function fetchParsed(
  url: FetchUrl,
  reach: Reach,
  bytesMax: number,
  { timeoutMs = FETCH_TIMEOUT_MS, resolver = resolveBySystem, ...ask }: FetchOptions,
): Promise<Fetched> {
  // PROD-4.3r3-1: one deadline, from the resolution of the name to the last byte.
  const signal = AbortSignal.timeout(timeoutMs);
  const fetching = resolve(url.hostname, reach.privateNetworks, resolver).then((addresses) =>
    send(url, addresses, reach, bytesMax, signal, ask),
  );
  return Promise.race([fetching, expiry(signal)]);
}

/** B8725-3.10-2: resolves the name once, and refuses it if any of its addresses may not be connected to. */
async function resolve(
  hostname: string,
  networks: readonly string[],
  resolver: Resolver,
): Promise<readonly LookupAddress[]> {
  const literal = bare(hostname);
  const family = isIP(literal);
  const answers = family === 0 ? await resolver(hostname).catch(() => []) : [{ address: literal, family }];
  if (answers.length === 0) throw new FetchFailed("name_unresolved", "the name does not resolve");
  if (!answers.every(({ address }) => mayConnect(address, networks))) {
    throw new FetchFailed("address_refused", "the name has an address that is not allowed");
  }
  // The owner of a name can list any number of addresses, and each would be tried.
  return answers.slice(0, FETCH_ADDRESSES_MAX);
}

type Ask = Pick<FetchOptions, "judge" | "ifNoneMatch" | "post">;

function send(
  url: URL,
  addresses: readonly LookupAddress[],
  { ca, privateNetworks }: Reach,
  bytesMax: number,
  signal: AbortSignal,
  ask: Ask,
): Promise<Fetched> {
  const { judge, ifNoneMatch, post } = ask;
  const { promise, resolve, reject } = Promise.withResolvers<Fetched>();
  // The name was resolved after the deadline, so no connection is opened.
  if (signal.aborted) throw late();
  // Connects to the checked addresses only, because a second resolution could return others. The first one to answer is
  // used.
  const checked: LookupFunction = (_hostname, { all }, callback) =>
    all ? callback(null, [...addresses]) : callback(null, addresses[0]?.address ?? "", addresses[0]?.family);
  const host = bare(url.hostname);
  const options = defined<ConnectionOptions>({
    host, // the name that the certificate must have
    servername: isIP(host) === 0 ? host : undefined,
    lookup: checked,
    port: Number(url.port || 443),
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    // RFC8414-6.1-2, RFC7515-8-v1: certificates are verified, even if an environment variable turns that off.
    rejectUnauthorized: judge === undefined,
    // SFD-7.2-1: with a judge, no public authority is trusted; without one, only the authorities decide.
    ca: judge === undefined ? ca : [],
  });
  const socket = connect(options);
  const fail = (reason: FetchReason, message: string, status?: number): void => {
    reject(new FetchFailed(reason, message, status));
    socket.destroy();
  };
  let reasonOf = (_code: string): FetchReason => "connection_failed";
  const failWith = ({ code = "" }: NodeJS.ErrnoException): void =>
    fail(reasonOf(code), code || "the connection failed");
  signal.addEventListener("abort", () => socket.destroy(), { once: true });
  socket.on("error", failWith);
  socket.once("connect", () => {
    reasonOf = (code) => TLS_REASONS.get(code) ?? "tls_failed";
    const peer = socket.remoteAddress?.replace(/^::ffff:(?=[0-9.]+$)/, "") ?? "";
    if (!mayConnect(peer, privateNetworks)) {
      fail("peer_refused", "the peer has an address that is not allowed");
    }
  });
  socket.once("secureConnect", () => {
    reasonOf = httpReason;
    const objection = judge?.(presented(socket));
    if (objection !== undefined) return fail("endpoint_refused", objection);
    const outgoing = request({
      host,
      port: url.port || 443,
      defaultPort: 443,
      path: `${url.pathname}${url.search}`,
      method: post === undefined ? "GET" : "POST",
      headers: defined<OutgoingHttpHeaders>({
        accept: "application/json",
        "accept-encoding": "identity",
        "if-none-match": ifNoneMatch,
        "content-type": post?.contentType,
        "content-length": post && Buffer.byteLength(post.text),
        authorization: post?.authorization,
      }),
      maxHeaderSize: HEADER_BYTES_MAX,
      createConnection: () => socket,
    });
    outgoing.on("error", failWith);
    outgoing.on("upgrade", () => fail("protocol", "the response switches to another protocol"));
    let received = 0;
    outgoing.once("socket", () => {
      // Limits interim responses, trailers and chunk extensions, which are not part of the content.
      socket.on("data", ({ length }: Buffer) => {
        received += length;
        if (received > bytesMax + FETCHED_AROUND_BYTES_MAX) {
          fail("too_large", "the response is too large outside of its content");
        }
      });
    });
    outgoing.on("response", (response) => {
      response.on("error", () => fail("broke_off", "the response ended early"));
      const refusal = refusalOf(response, ask);
      if (refusal !== undefined) return fail(...refusal);
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        // CIMD-8.7-1: reading stops at the limit.
        if (bytes > bytesMax) fail("too_large", "the content is too large");
        else chunks.push(chunk);
      });
      response.on("end", () => {
        const text = decodeUtf8(Buffer.concat(chunks));
        if (!text.ok) return fail("not_utf8", "the content is not UTF-8");
        const { statusCode: status = 0 } = response;
        resolve({ status, notModified: status === 304, text: text.value, ...fieldsOf(response) });
      });
    });
    outgoing.end(post?.text);
  });
  return promise;
}

const TLS_REASONS: ReadonlyMap<string, FetchReason> = new Map([
  ["CERT_HAS_EXPIRED", "certificate_expired"],
  ["CERT_NOT_YET_VALID", "certificate_not_yet_valid"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "certificate_name_wrong"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "certificate_untrusted"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "certificate_untrusted"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "certificate_untrusted"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "certificate_untrusted"],
]);

function httpReason(code: string): FetchReason {
  if (code === "HPE_HEADER_OVERFLOW") return "headers_too_large";
  return code.startsWith("HPE_") ? "protocol" : "broke_off";
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** Why a response is refused before its content is read; undefined if it is not. */
function refusalOf(
  { statusCode = 0, headers }: IncomingMessage,
  { ifNoneMatch, post }: Ask,
): [reason: FetchReason, message: string, status?: number] | undefined {
  const text = `the status is ${statusCode}`;
  // CIMD-5-5: redirects are not followed.
  if (REDIRECTS.includes(statusCode)) return ["redirected", text];
  // CIMD-5-4, CIMD-4-3: only 200 has a document; 304 is accepted only after a conditional request.
  const good =
    post === undefined
      ? [200, ...(ifNoneMatch === undefined ? [] : [304])]
      : [200, 201, 202, 204, ...(post.errors ?? [])];
  if (!good.includes(statusCode)) return ["status", text, statusCode];
  // The request accepts no content coding, so a response with one (whatever its name) is refused.
  const { "content-encoding": encoding, "transfer-encoding": transfer = "chunked" } = headers;
  const encoded = encoding !== undefined || transfer.toLowerCase() !== "chunked";
  return encoded ? ["encoded", "the content is encoded"] : undefined;
}

/** RFC 9110 8.8.3: an entity tag, with a limit for what is sent back. */
const ETAG = /^(?:W\/)?"[!#-~]{0,256}"$/;

function fieldsOf({ headers }: IncomingMessage): Omit<Fetched, "status" | "notModified" | "text"> {
  const { age = "", expires = "", date = "", etag = "" } = headers;
  return defined<Omit<Fetched, "status" | "notModified" | "text">>({
    contentType: headers["content-type"] ?? "",
    cacheControl: headers["cache-control"] ?? "",
    age,
    expires,
    date,
    etag: ETAG.test(etag) ? etag : undefined,
  });
}

/** The certificates as the peer sent them, leaf first; the platform's own verification of them is not used. */
function presented(socket: TLSSocket): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  let certificate = socket.getPeerX509Certificate();
  while (certificate !== undefined) {
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  return chain;
}

const late = (): FetchFailed => new FetchFailed("timeout", "no response in time");

function expiry(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(late()), { once: true });
  });
}

/** Takes the brackets from an IPv6 literal, and leaves any other host unchanged. */
const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");
