/**
 * One message each way between node:https and the web standards: what of a request may pass, its body, the
 * `Request` made of it, and the `Response` written back.
 * RFC 9112, HTTP/1.1: https://www.rfc-editor.org/rfc/rfc9112.html
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import { DISCARD_BYTES_MAX } from "../limits.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Refusal } from "./answers.ts";
import { REFUSALS } from "./answers.ts";

/** RFC6749-10.14-1: what Node lets pass, judged on the raw method, target and fields, before they become a `Request`. */
export function refuseHead(
  request: IncomingMessage,
  limit: { headersMax: number; bodyBytesMax: number },
): Refusal | undefined {
  const fields = request.rawHeaders;
  if (fields.length > 2 * limit.headersMax) return REFUSALS.head;
  if (request.method === "TRACE") return REFUSALS.method;
  // An absolute form or a second slash would name another host, a fragment would hide in the path.
  if (!/^\/(?!\/)[^#]*$/.test(request.url ?? "")) return REFUSALS.target;
  let hosts = 0;
  let authorizations = 0;
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const value = (fields[index + 1] ?? "").trim().toLowerCase();
    switch (fields[index]?.toLowerCase()) {
      case "host":
        hosts += 1;
        break;
      case "authorization":
        authorizations += 1;
        break;
      case "content-encoding":
        if (value !== "identity") return REFUSALS.coding;
        break;
      case "transfer-encoding":
        if (value !== "chunked") return REFUSALS.transferCoding;
        break;
      case "content-length":
        if (Number(value) > limit.bodyBytesMax) return REFUSALS.body;
        break;
    }
  }
  if (hosts > 1 || (hosts === 0 && request.httpVersion === "1.1")) return REFUSALS.host;
  // RFC6749-5.2-2: Node would keep the first and drop the others.
  if (authorizations > 1) return REFUSALS.authorization;
  return undefined;
}

/** The web's own request; `path` is the raw target without its query. */
export function toRequest(
  request: IncomingMessage,
  body: Uint8Array<ArrayBuffer>,
  origin: string,
  path: string,
): Result<Request, Refusal> {
  const method = request.method ?? "";
  if ((method === "GET" || method === "HEAD") && body.length > 0) return err(REFUSALS.bodyUnexpected);
  // From the raw fields: Node's object keeps the first of two Content-Type and joins or drops others by a list.
  const headers: [string, string][] = [];
  for (let index = 0; index + 1 < request.rawHeaders.length; index += 2) {
    headers.push([request.rawHeaders[index] ?? "", request.rawHeaders[index + 1] ?? ""]);
  }
  const url = origin + (request.url ?? "");
  const converted = new Request(url, { method, headers, ...(body.length > 0 ? { body } : {}) });
  // A path that the parser had to change (dot segments, backslashes, characters to escape) is none of ours.
  const unchanged = converted.url === origin + path || converted.url.startsWith(`${origin}${path}?`);
  return unchanged ? ok(converted) : err(REFUSALS.notFound);
}

/**
 * RFC8705-3-3: from the TLS layer, never from a header field (RFC9440-4-1). This chain is the list as the peer sent it,
 * strangers included; `getPeerCertificate` would link it by name, drop what does not link, and add from the store.
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

/** The whole body before there is a `Request`: no slower than a stream, and no handler waits for a slow peer. */
export function readBody(
  request: IncomingMessage,
  bytesMax: number,
): Promise<Result<Uint8Array<ArrayBuffer>, "body_too_large" | "peer_gone">> {
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
    request.once("end", () => resolve(ok(Buffer.concat(chunks))));
    request.once("error", () => resolve(err("peer_gone")));
    request.once("close", () => resolve(err("peer_gone")));
  });
}

/** Reads on without keeping, for the peer to see its answer instead of a reset; up to a limit of its own. */
export function discard(request: IncomingMessage): void {
  let size = 0;
  request.on("error", () => request.destroy());
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > DISCARD_BYTES_MAX) request.socket.destroy();
  });
}

export async function write(
  response: ServerResponse,
  answer: Response,
  requestId: string,
  last: boolean,
): Promise<void> {
  const body = Buffer.from(await answer.arrayBuffer());
  if (response.destroyed) return;
  const headers = [...answer.headers].flat();
  headers.push("X-Request-Id", requestId);
  if (answer.status !== 204 && answer.status !== 304) headers.push("Content-Length", String(body.length));
  if (last) headers.push("Connection", "close");
  response.writeHead(answer.status, headers);
  // Node leaves the body out of an answer to HEAD.
  response.end(body);
}

export type UnreadableBody = { kind: "body_too_large" } | { kind: "body_not_utf8" };

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The body as text; a byte order mark stays in it. */
export async function readText(request: Request, bytesMax: number): Promise<Result<string, UnreadableBody>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > bytesMax) return err({ kind: "body_too_large" });
    chunks.push(chunk);
  }
  try {
    // RFC6749-B-2: a sequence that is not UTF-8 is an error and not a replacement character.
    return ok(UTF8.decode(Buffer.concat(chunks)));
  } catch {
    return err({ kind: "body_not_utf8" });
  }
}

/** PROD-4.1-2, PROD-4.2-3: compared without case; of its parameters only the charset means something. */
export function hasMediaType(request: Request, expected: string): boolean {
  const [type = "", ...parameters] = (request.headers.get("content-type") ?? "").toLowerCase().split(";");
  const charset = parameters.map((one) => one.trim()).find((one) => one.startsWith("charset="));
  const utf8 = charset === undefined || /^charset="?utf-8"?$/.test(charset);
  return type.trim() === expected && utf8;
}
