/**
 * The one way out: GET, or POST to the operator's own sink, over HTTPS to an address that was checked, with one
 * deadline and a byte cap. No redirects, no proxy from the environment, no cookies, no compression, no connection kept.
 */
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { request } from "node:http";
import type { LookupFunction } from "node:net";
import { isIP } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { connect } from "node:tls";
import {
  FETCH_ADDRESSES_MAX,
  FETCH_TIMEOUT_MS,
  FETCHED_AROUND_BYTES_MAX,
  HEADER_BYTES_MAX,
} from "../../limits.ts";
import { defined } from "../../result.ts";
import { mayConnect } from "../../settings/outbound.ts";
import type { Reach, RemoteDocument } from "../../settings/settings.ts";
import type { UrlFailure } from "../../spec/rfc3986.ts";
import { parseFetchUrl } from "../../spec/rfc3986.ts";
import { decodeUtf8 } from "../../spec/rfc8259.ts";

/** One for each cause, for the audit trail. */
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

/** Why nothing came back; the text is for our log, never for a caller. */
export class FetchFailed extends Error {
  override name = "FetchFailed";
  readonly reason: FetchReason;

  constructor(reason: FetchReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The fields as they came; one that is absent is empty. */
export type Fetched = {
  /** What `ifNoneMatch` names is still what there is, and nothing else came. */
  notModified: boolean;
  text: string;
  contentType: string;
  cacheControl: string;
  age: string;
  expires: string;
  date: string;
  /** Fit to be sent back. */
  etag?: string;
};

/** All addresses of a name. */
export type Resolver = (hostname: string) => Promise<readonly LookupAddress[]>;

/** Why the peer that sent these certificates, leaf first, is not the one that is asked; undefined: it is. */
export type Judge = (presented: readonly Uint8Array[]) => string | undefined;

export type FetchOptions = {
  timeoutMs?: number;
  resolver?: Resolver;
  /** Decides in place of the authorities of the Web and the name of the host, before anything is asked. */
  judge?: Judge;
  /** The `etag` of the copy that is there already. */
  ifNoneMatch?: string;
  post?: Posted;
};

/** What is sent instead of asked for. */
export type Posted = { contentType: string; text: string; authorization?: string };

const resolveBySystem: Resolver = (hostname) => lookup(hostname, { all: true });

export async function fetchDocument(
  document: RemoteDocument,
  bytesMax: number,
  { timeoutMs = FETCH_TIMEOUT_MS, resolver = resolveBySystem, ...ask }: FetchOptions = {},
): Promise<Fetched> {
  const url = parseFetchUrl(document.url);
  if (!url.ok) throw new FetchFailed(url.error.kind, "the URL is not one that we fetch");
  // One deadline from the resolution of the name to the last byte.
  const signal = AbortSignal.timeout(timeoutMs);
  const fetching = resolve(url.value.hostname, document.privateNetworks, resolver).then((addresses) =>
    send(url.value, addresses, document, bytesMax, signal, ask),
  );
  return Promise.race([fetching, expiry(signal)]);
}

/** B8725-3.10-2: resolved once, and refused if any of the answers is an address we do not go to. */
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
    throw new FetchFailed("address_refused", "the name leads to an address that we do not connect to");
  }
  // Whoever has a name has as many addresses as he likes, and each would be knocked at.
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
  // The answer to the name came too late: not one packet more.
  if (signal.aborted) throw late();
  // A second resolution would be a second answer. Of several addresses the first that answers is taken.
  const checked: LookupFunction = (_hostname, { all }, callback) =>
    all ? callback(null, [...addresses]) : callback(null, addresses[0]?.address ?? "", addresses[0]?.family);
  const host = bare(url.hostname);
  const options = defined<ConnectionOptions>({
    host, // which the certificate must name
    servername: isIP(host) === 0 ? host : undefined,
    lookup: checked,
    port: Number(url.port || 443),
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    // RFC8414-6.1-2, RFC7515-8-v1: the certificate is checked, whatever the environment says about that.
    rejectUnauthorized: judge === undefined,
    // SFD-7.2-1: for whom a judge decides, no authority of the Web speaks, and the other way round.
    ca: judge === undefined ? ca : [],
  });
  const socket = connect(options);
  const fail = (reason: FetchReason, message: string): void => {
    reject(new FetchFailed(reason, message));
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
      fail("peer_refused", "the peer has an address that we do not connect to");
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
    outgoing.on("upgrade", () => fail("protocol", "the answer is in another protocol"));
    let received = 0;
    outgoing.once("socket", () => {
      // Interim answers without end, trailers, and what may stand between the chunks of a body.
      socket.on("data", ({ length }: Buffer) => {
        received += length;
        if (received > bytesMax + FETCHED_AROUND_BYTES_MAX) fail("too_large", "there is too much around it");
      });
    });
    outgoing.on("response", (response) => {
      response.on("error", () => fail("broke_off", "the answer broke off"));
      const refusal = refusalOf(response, ask);
      if (refusal !== undefined) return fail(...refusal);
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        // CIMD-8.7-1
        if (bytes > bytesMax) fail("too_large", "the answer is too large");
        else chunks.push(chunk);
      });
      response.on("end", () => {
        const text = decodeUtf8(Buffer.concat(chunks));
        if (!text.ok) return fail("not_utf8", "the answer is not UTF-8");
        resolve({ notModified: response.statusCode === 304, text: text.value, ...fieldsOf(response) });
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

/** What is wrong with the answer, before a byte of its content is read. */
function refusalOf(
  { statusCode = 0, headers }: IncomingMessage,
  { ifNoneMatch, post }: Ask,
): [FetchReason, string] | undefined {
  const words = `the status is ${statusCode}`;
  // CIMD-5-5
  if (REDIRECTS.includes(statusCode)) return ["redirected", words];
  // CIMD-5-4, CIMD-4-3; "not modified" is an answer only to who asked for it.
  const good = post === undefined ? [200, ...(ifNoneMatch === undefined ? [] : [304])] : [200, 201, 202, 204];
  if (!good.includes(statusCode)) return ["status", words];
  // Whatever it is called: what is asked for is not encoded, and what is encoded is not read.
  const { "content-encoding": encoding, "transfer-encoding": transfer = "chunked" } = headers;
  const encoded = encoding !== undefined || transfer.toLowerCase() !== "chunked";
  return encoded ? ["encoded", "the content is encoded"] : undefined;
}

/** RFC 9110 8.8.3, and no longer than we care to send it back. */
const ETAG = /^(?:W\/)?"[!#-~]{0,256}"$/;

function fieldsOf({ headers }: IncomingMessage): Omit<Fetched, "notModified" | "text"> {
  const { age = "", expires = "", date = "", etag = "" } = headers;
  return defined<Omit<Fetched, "notModified" | "text">>({
    contentType: headers["content-type"] ?? "",
    cacheControl: headers["cache-control"] ?? "",
    age,
    expires,
    date,
    etag: ETAG.test(etag) ? etag : undefined,
  });
}

/** As the peer sent them, leaf first; what the platform makes of them is no evidence. */
function presented(socket: TLSSocket): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  let certificate = socket.getPeerX509Certificate();
  while (certificate !== undefined) {
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  return chain;
}

const late = (): FetchFailed => new FetchFailed("timeout", "no answer in time");

function expiry(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(late()), { once: true });
  });
}

/** An IPv6 literal without its brackets; any other host as it is. */
const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");
