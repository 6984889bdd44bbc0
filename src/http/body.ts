/** The body of a request as a handler reads it: its media type, its text, its JSON. */

import { BODY_BYTES_MAX } from "../limits/connections.ts";
import { CLAIMS_DEPTH_MAX } from "../limits/input.ts";
import { type Awaitable, err, ok, type Result, whenReady } from "../result.ts";
import { type Json, parseJson } from "../spec/rfc8259.ts";
import { splitField } from "../spec/rfc9110.ts";
import type { HttpRefusal } from "./answers.ts";
import type { HttpRequest } from "./handler.ts";

/** PROD-4.1-2, PROD-4.2-3: media types are compared without case; of the parameters only the charset counts. */
export function hasMediaType(request: HttpRequest, expected: string): boolean {
  const field = (request.headers.get("content-type") ?? "").toLowerCase();
  // A request with two fields is refused, because readers differ in which one they take.
  if (splitField(field, ",").length > 1) return false;
  const [type, ...parameters] = splitField(field, ";");
  const charset = parameters.find((one) => one.startsWith("charset="));
  const utf8 = charset === undefined || charset === "charset=utf-8" || charset === 'charset="utf-8"';
  return type === expected && utf8;
}

type UnreadableBody = { kind: "body_too_large" } | { kind: "body_not_utf8" };

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads the body as text; a byte order mark stays in it. */
export function readText(request: HttpRequest, bytesMax: number): Awaitable<Result<string, UnreadableBody>> {
  return whenReady(request.bytes(), (bytes) => {
    if (bytes.length > bytesMax) return err({ kind: "body_too_large" });
    try {
      // RFC6749-B-2: a sequence that is not UTF-8 is an error and not a replacement character.
      return ok(UTF8.decode(bytes));
    } catch {
      return err({ kind: "body_not_utf8" });
    }
  });
}

/** Reads the body as the text of a form. */
export const readFormText = (
  request: HttpRequest,
): Awaitable<Result<string, UnreadableBody | { kind: "content_type_unsupported" }>> =>
  hasMediaType(request, "application/x-www-form-urlencoded")
    ? readText(request, BODY_BYTES_MAX)
    : err({ kind: "content_type_unsupported" });

/** Reads JSON for our own endpoints, as strictly as every other input of a client. */
export async function readJson(
  request: HttpRequest,
  depthMax = CLAIMS_DEPTH_MAX,
): Promise<Result<Json, HttpRefusal>> {
  if (!hasMediaType(request, "application/json")) {
    return err({ status: 415, description: "the content type is not application/json" });
  }
  const body = await readText(request, BODY_BYTES_MAX);
  if (!body.ok && body.error.kind === "body_too_large") {
    return err({ status: 413, description: "the request body is too large" });
  }
  const json = body.ok ? parseJson(body.value, depthMax) : body;
  return json.ok ? json : err({ status: 400, description: "the body is not JSON" });
}
