/**
 * One message each way between node:https and a handler: which heads are refused, the body, the `HttpRequest` made of
 * both, and the answer written back.
 * RFC 9112, HTTP/1.1: https://www.rfc-editor.org/rfc/rfc9112.html
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import ipaddr from "ipaddr.js";
import { DISCARD_BYTES_MAX } from "../limits/connections.ts";
import { err, ok, type Result } from "../result.ts";
import { parseCertificate } from "../spec/rfc5280.ts";
import { type HttpRefusal, REFUSALS } from "./answers.ts";
import type { HttpRequest, HttpResponse, Peer } from "./handler.ts";

/** RFC6749-10.14-1: requests that Node accepts and we do not, by the raw method, target and fields. */
export function refuseHead(
  request: IncomingMessage,
  limit: { headersMax: number; bodyBytesMax: number },
): HttpRefusal | undefined {
  const fields = request.rawHeaders;
  if (fields.length > 2 * limit.headersMax) return REFUSALS.head;
  if (request.method === "TRACE") return REFUSALS.method;
  // An absolute form or a second slash would name another host; a fragment does not belong to a request.
  if (!/^\/(?!\/)[^#]*$/.test(request.url ?? "")) return REFUSALS.target;
  let hosts = 0;
  let authorizations = 0;
  let cookies = 0;
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const value = (fields[index + 1] ?? "").toLowerCase();
    switch (fields[index]?.toLowerCase()) {
      case "host":
        // RFC 9112, 3.2: a Host field that names no host is refused.
        if (!isHost(value)) return REFUSALS.host;
        hosts += 1;
        break;
      case "authorization":
        authorizations += 1;
        break;
      case "cookie":
        cookies += 1;
        break;
      case "content-encoding":
        if (value !== "identity") return REFUSALS.coding;
        break;
      case "transfer-encoding":
        // RFC 9112, 6.1 and 6.3: a body whose end is not certain, or of a version that does not know the field.
        if (value !== "chunked" || request.httpVersion !== "1.1") return REFUSALS.transferCoding;
        break;
      case "content-length":
        if (Number(value) > limit.bodyBytesMax) return REFUSALS.body;
        break;
    }
  }
  if (hosts > 1 || (hosts === 0 && request.httpVersion === "1.1")) return REFUSALS.host;
  // RFC6749-5.2-2: two credentials are refused, because Node would keep the first and drop the other.
  if (authorizations > 1) return REFUSALS.authorization;
  // COOKIE-4.2.1-1: browsers send one field; with two, readers disagree about which of them holds the cookie of a page.
  if (cookies > 1) return REFUSALS.cookie;
  return undefined;
}

const HOST = /^(?:\[([0-9a-f:.]+)\]|(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})+)(?::[0-9]*)?$/;

/**
 * RFC 9110, 7.2: the field is a name or an address, and perhaps a port; for https it is never empty. It is compared in
 * lower case.
 */
function isHost(value: string): boolean {
  const match = HOST.exec(value);
  return match !== null && (match[1] === undefined || ipaddr.IPv6.isValid(match[1]));
}

/** Makes what the handler is given; `path` is the raw target without its query. */
export function toRequest(
  { method = "", url: target = "", rawHeaders }: IncomingMessage,
  body: Uint8Array,
  origin: string,
  path: string,
): Result<HttpRequest, HttpRefusal> {
  if ((method === "GET" || method === "HEAD") && body.length > 0) return err(REFUSALS.bodyUnexpected);
  const url = new URL(origin + target).href;
  // A path that the URL parser changes (dot segments, backslashes, characters to escape) is not one of ours.
  const unchanged = url === origin + path || url.startsWith(`${origin}${path}?`);
  if (!unchanged) return err(REFUSALS.notFound);
  return ok({ method, url, headers: { get: (name) => fieldOf(rawHeaders, name) }, bytes: () => body });
}

/**
 * Fields are read from the raw ones, because Node's object keeps the first of two Content-Type and joins or drops
 * others by a list.
 */
function fieldOf(rawHeaders: readonly string[], name: string): string | null {
  const wanted = name.toLowerCase();
  const values: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const field = rawHeaders[index] ?? "";
    if (field.length === wanted.length && field.toLowerCase() === wanted)
      values.push(rawHeaders[index + 1] ?? "");
  }
  return values.length === 0 ? null : values.join(", ");
}

/**
 * RFC8705-3-3: the certificates come from the TLS layer, never from a header field (RFC9440-4-1). They are the list as
 * the peer sent it, unrelated ones included; `getPeerCertificate` would link by name, drop the unrelated ones, and add
 * others from the trust store.
 */
export function presented(socket: TLSSocket): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  let certificate = socket.getPeerX509Certificate();
  while (certificate !== undefined) {
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  return chain;
}

/** Parses the leaf of these certificates; absent if there is none. */
export const leafOf = ([leaf]: readonly Uint8Array[]): Peer["leaf"] => leaf && parseCertificate(leaf);

/** Reads the whole body before the handler is called, so that no handler waits for a slow peer. */
export function readBody(
  request: IncomingMessage,
  bytesMax: number,
): Promise<Result<Uint8Array, "body_too_large" | "peer_gone">> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= bytesMax) {
        chunks.push(chunk);
      } else {
        request.removeAllListeners("data");
        discard(request);
        resolve(err("body_too_large"));
      }
    });
    const leave = (): void => resolve(err("peer_gone"));
    request.on("end", () => resolve(ok(joined(chunks))));
    request.on("error", leave);
    request.on("close", leave);
  });
}

/** A body that came in one piece is not copied. */
const joined = (chunks: readonly Buffer[]): Uint8Array =>
  chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);

/** Reads and drops the rest of the body, up to a limit, so that the peer sees its answer and not a reset. */
export function discard(request: IncomingMessage): void {
  let size = 0;
  request.on("error", () => request.destroy());
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > DISCARD_BYTES_MAX) request.socket.destroy();
  });
}

export function write(
  response: ServerResponse,
  { status, headers, body }: HttpResponse,
  requestId: string,
  last: boolean,
): void {
  if (response.destroyed) return;
  const fields: Record<string, string> = { ...headers, "X-Request-Id": requestId };
  if (status !== 204 && status !== 304) fields["Content-Length"] = String(Buffer.byteLength(body));
  if (last) fields.Connection = "close";
  response.writeHead(status, fields);
  // Node leaves the body out of an answer to HEAD.
  response.end(body);
}
