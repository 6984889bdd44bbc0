/**
 * The only outbound requests of this server: GET, or POST to the operator's sink, over HTTPS to a checked address, with
 * one deadline and a limit in bytes; without redirects, proxies, cookies and compression, and without reuse of connections
 * but to an origin that the operator configured.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { request } from "node:https";
import { HEADER_BYTES_MAX } from "../../limits/connections.ts";
import {
  FETCH_TIMEOUT_MS,
  FETCHED_AROUND_BYTES_MAX,
  FETCHED_SECONDS,
  FETCHED_SECONDS_MAX,
  FETCHED_SECONDS_MIN,
  KEPT_LOST_MS,
} from "../../limits/fetching.ts";
import { defined } from "../../result.ts";
import type { Reach, RemoteDocument } from "../../settings/settings.ts";
import { type FetchUrl, parseFetchUrl } from "../../spec/rfc3986.ts";
import { decodeUtf8 } from "../../spec/rfc8259.ts";
import {
  CheckedAgent,
  type CheckedAgentOptions,
  type CheckedRequest,
  type Judge,
  type Resolver,
} from "./checked-agent.ts";
import { FetchFailed, type FetchReason, late } from "./fetch-failed.ts";

/** The bounds within which a document stays fresh, whatever it says itself. */
export const FRESH_BOUNDS = {
  min: FETCHED_SECONDS_MIN,
  max: FETCHED_SECONDS_MAX,
  otherwise: FETCHED_SECONDS,
};

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

export type FetchOptions = {
  timeoutMs?: number;
  resolver?: Resolver;
  /** Authenticates the peer instead of the public authorities and the host name, before the request is sent. */
  judge?: Judge;
  /** The connections to use, in place of a new one with these two. */
  agent?: CheckedAgent;
  /** The `etag` of the copy that the caller has. */
  ifNoneMatch?: string;
  authorization?: string;
  post?: Posted;
};

/** The body of a POST request; `errors`: statuses whose content says what was wrong, and is read for that. */
export type Posted = {
  contentType: string;
  text: string;
  authorization?: string;
  errors?: readonly number[];
};

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
  { timeoutMs = FETCH_TIMEOUT_MS, resolver, judge, agent, ...ask }: FetchOptions,
): Promise<Fetched> {
  const checked = agent ?? new CheckedAgent(reach, defined<CheckedAgentOptions>({ resolver, judge }));
  // PROD-4.3r3-1: one deadline, from the resolution of the name to the last byte. The platform's own one would go on
  // after that, and keep what was fetched until then.
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), timeoutMs).unref();
  try {
    return await send(url, checked, bytesMax, controller.signal, ask);
  } finally {
    clearTimeout(timer);
  }
}

type Ask = Pick<FetchOptions, "ifNoneMatch" | "authorization" | "post">;

function send(
  url: URL,
  agent: CheckedAgent,
  bytesMax: number,
  signal: AbortSignal,
  ask: Ask,
): Promise<Fetched> {
  const { promise, resolve, reject } = Promise.withResolvers<Fetched>();
  const asked = requestOf(url, agent, signal, ask);
  agent.closeOld();
  const sentMs = agent.nowMs();
  let received = 0;
  const outgoing = request(asked);
  const fail = (...why: Refusal): void => {
    reject(new FetchFailed(...why));
    outgoing.destroy();
  };
  // The agent may still look for an address, so the caller is told before the request is.
  const onDeadline = (): void => {
    reject(late());
    outgoing.destroy();
  };
  signal.addEventListener("abort", onDeadline, { once: true });
  outgoing.on("error", (fault: NodeJS.ErrnoException) => {
    const { code = "" } = fault;
    if (fault instanceof FetchFailed) reject(fault);
    // A server that closes a kept connection as this request comes has not seen it, nor begun to answer.
    else if (
      !signal.aborted &&
      outgoing.reusedSocket &&
      received === 0 &&
      isCutAtOnce(code, agent.nowMs() - sentMs)
    )
      resolve(send(url, agent, bytesMax, signal, ask));
    else fail(httpReason(code), code || "the connection failed");
  });
  outgoing.on("upgrade", (_, socket) => {
    socket.destroy();
    fail("protocol", "the response switches to another protocol");
  });
  outgoing.once("socket", (socket) => {
    // Limits interim responses, trailers and chunk extensions, which are not part of the content.
    const count = ({ length }: Buffer): void => {
      received += length;
      if (received > bytesMax + FETCHED_AROUND_BYTES_MAX) {
        fail("too_large", "the response is too large outside of its content");
      }
    };
    socket.on("data", count);
    outgoing.once("close", () => socket.off("data", count));
  });
  outgoing.on("response", (response) => {
    response.on("error", () => fail("broke_off", "the response ended early"));
    const refusal = refusalOf(response, ask);
    if (refusal !== undefined) return fail(...refusal);
    collect(response, bytesMax, fail, resolve);
  });
  outgoing.end(ask.post?.text);
  return promise;
}

function requestOf(url: URL, agent: CheckedAgent, deadline: AbortSignal, ask: Ask): CheckedRequest {
  const { ifNoneMatch, post, authorization = post?.authorization } = ask;
  return {
    agent,
    deadline,
    host: bare(url.hostname),
    port: url.port || 443,
    path: `${url.pathname}${url.search}`,
    method: post === undefined ? "GET" : "POST",
    headers: defined<OutgoingHttpHeaders>({
      accept: "application/json",
      "accept-encoding": "identity",
      "if-none-match": ifNoneMatch,
      "content-type": post?.contentType,
      "content-length": post && Buffer.byteLength(post.text),
      authorization,
    }),
    maxHeaderSize: HEADER_BYTES_MAX,
  };
}

function collect(
  response: IncomingMessage,
  bytesMax: number,
  fail: (...why: Refusal) => void,
  done: (fetched: Fetched) => void,
): void {
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
    done({ status, notModified: status === 304, text: text.value, ...fieldsOf(response) });
  });
}

const isCutAtOnce = (code: string, afterMs: number): boolean =>
  code === "ECONNRESET" && afterMs < KEPT_LOST_MS;

function httpReason(code: string): FetchReason {
  if (code === "HPE_HEADER_OVERFLOW") return "headers_too_large";
  return code.startsWith("HPE_") ? "protocol" : "broke_off";
}

type Refusal = ConstructorParameters<typeof FetchFailed>;

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** Why a response is refused before its content is read; undefined if it is not. */
function refusalOf(
  { statusCode = 0, headers }: IncomingMessage,
  { ifNoneMatch, post }: Ask,
): Refusal | undefined {
  const text = `the status is ${statusCode}`;
  // CIMD-5-5: redirects are not followed.
  if (REDIRECTS.includes(statusCode)) return ["redirected", text];
  // CIMD-5-4, CIMD-4-3: only 200 has a document; 304 is accepted only after a conditional request.
  const good =
    post === undefined
      ? [200, ...(ifNoneMatch === undefined ? [] : [304])]
      : [200, 201, 202, 204, ...(post.errors ?? [])];
  if (!good.includes(statusCode)) return ["status", text, statusCode, headers["retry-after"]];
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

/** Takes the brackets from an IPv6 literal, and leaves any other host unchanged. */
const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");
