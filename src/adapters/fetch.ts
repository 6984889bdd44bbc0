/**
 * The one way out: GET, or POST to the operator's own sink, over HTTPS to an address that was checked, with one
 * deadline and a byte cap. No redirects, no proxy from the environment, no cookies, no compression, no connection kept.
 */
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { request } from "node:http";
import type { LookupFunction } from "node:net";
import { isIP } from "node:net";
import type { TLSSocket } from "node:tls";
import { connect } from "node:tls";
import type { RemoteDocument } from "../ports.ts";
import { decodeUtf8 } from "../spec/json.ts";
import { FETCH_TIMEOUT_MS } from "../spec/limits.ts";
import { mayConnect, parseFetchUrl } from "../spec/outbound.ts";

/** Why nothing came back; the text is for our log, never for a caller. */
export class FetchFailed extends Error {
  override name = "FetchFailed";
}

export type Fetched = { text: string; contentType: string; cacheControl: string };

/** All addresses of a name. */
export type Resolver = (hostname: string) => Promise<readonly LookupAddress[]>;

/** Why the peer that sent these certificates, leaf first, is not the one that is asked; undefined: it is. */
export type Judge = (presented: readonly Uint8Array[]) => string | undefined;

export type FetchOptions = {
  timeoutMs?: number;
  resolver?: Resolver;
  /** Decides in place of the authorities of the Web and the name of the host, before anything is asked. */
  judge?: Judge;
  post?: Posted;
};

/** What is sent instead of asked for. */
export type Posted = { contentType: string; text: string; authorization?: string };

/** Whom a document is fetched from, without a word on what it is. */
type Reach = Pick<RemoteDocument, "privateNetworks" | "ca">;

const resolveBySystem: Resolver = (hostname) => lookup(hostname, { all: true });

export async function fetchDocument(
  document: RemoteDocument,
  bytesMax: number,
  { timeoutMs = FETCH_TIMEOUT_MS, resolver = resolveBySystem, judge, post }: FetchOptions = {},
): Promise<Fetched> {
  const url = parseFetchUrl(document.url);
  if (!url.ok) throw new FetchFailed("the URL is not one that we fetch");
  // One deadline from the resolution of the name to the last byte.
  const signal = AbortSignal.timeout(timeoutMs);
  const fetching = resolve(url.value.hostname, document.privateNetworks, resolver).then((addresses) =>
    send(url.value, addresses, document, bytesMax, signal, { judge, post }),
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
  if (answers.length === 0) throw new FetchFailed("the name does not resolve");
  if (!answers.every(({ address }) => mayConnect(address, networks))) {
    throw new FetchFailed("the name leads to an address that we do not connect to");
  }
  return answers;
}

function send(
  url: URL,
  addresses: readonly LookupAddress[],
  { ca, privateNetworks }: Reach,
  bytesMax: number,
  signal: AbortSignal,
  { judge, post }: { judge: Judge | undefined; post: Posted | undefined },
): Promise<Fetched> {
  const { promise, resolve, reject } = Promise.withResolvers<Fetched>();
  // The answer to the name came too late: not one packet more.
  if (signal.aborted) throw new FetchFailed(LATE);
  // A second resolution would be a second answer. Of several addresses the first that answers is taken.
  const checked: LookupFunction = (_hostname, { all }, callback) =>
    all ? callback(null, [...addresses]) : callback(null, addresses[0]?.address ?? "", addresses[0]?.family);
  const host = bare(url.hostname);
  const socket = connect({
    host, // which the certificate must name
    ...(isIP(host) === 0 && { servername: host }),
    lookup: checked,
    port: Number(url.port || 443),
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    // RFC8414-6.1-2, RFC7515-8-v1: the certificate is checked, whatever the environment says about that.
    rejectUnauthorized: judge === undefined,
    // SFD-7.2-1: for whom a judge decides, no authority of the Web speaks, and the other way round.
    ...(judge !== undefined ? { ca: [] } : ca !== undefined && { ca }),
  });
  const fail = (message: string): void => {
    reject(new FetchFailed(message));
    socket.destroy();
  };
  const failWith = (error: NodeJS.ErrnoException): void => fail(error.code ?? "the connection failed");
  signal.addEventListener("abort", () => socket.destroy(), { once: true });
  socket.on("error", failWith);
  socket.once("connect", () => {
    const peer = socket.remoteAddress?.replace(/^::ffff:(?=[0-9.]+$)/, "") ?? "";
    if (!mayConnect(peer, privateNetworks)) fail("the peer has an address that we do not connect to");
  });
  socket.once("secureConnect", () => {
    const objection = judge?.(presented(socket));
    if (objection !== undefined) return fail(objection);
    const outgoing = request({
      host,
      port: url.port || 443,
      defaultPort: 443,
      path: `${url.pathname}${url.search}`,
      method: post === undefined ? "GET" : "POST",
      headers: {
        accept: "application/json",
        "accept-encoding": "identity",
        ...(post !== undefined && {
          "content-type": post.contentType,
          "content-length": Buffer.byteLength(post.text),
        }),
        ...(post?.authorization !== undefined && { authorization: post.authorization }),
      },
      createConnection: () => socket,
    });
    outgoing.on("error", failWith);
    outgoing.on("upgrade", () => fail("the answer is in another protocol"));
    outgoing.on("response", (response) => {
      const { statusCode, headers } = response;
      response.on("error", () => fail("the answer broke off"));
      const good = post === undefined ? [200] : [200, 201, 202, 204];
      if (!good.includes(statusCode ?? 0)) return fail(`the status is ${statusCode}`);
      if ((headers["content-encoding"] ?? "identity") !== "identity") return fail("the content is encoded");
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > bytesMax) fail("the answer is too large");
        else chunks.push(chunk);
      });
      response.on("end", () => {
        const text = decodeUtf8(Buffer.concat(chunks));
        if (!text.ok) return fail("the answer is not UTF-8");
        resolve({
          text: text.value,
          contentType: headers["content-type"] ?? "",
          cacheControl: headers["cache-control"] ?? "",
        });
      });
    });
    outgoing.end(post?.text);
  });
  return promise;
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

const LATE = "no answer in time";

function expiry(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new FetchFailed(LATE)), { once: true });
  });
}

/** An IPv6 literal without its brackets; any other host as it is. */
const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");
