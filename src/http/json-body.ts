/** A request body in JSON, for our own endpoints; read as strictly as everything else that strangers write. */

import { BODY_BYTES_MAX, CLAIMS_DEPTH_MAX } from "../limits.ts";
import type { Result } from "../result.ts";
import { err } from "../result.ts";
import type { Json } from "../spec/rfc8259.ts";
import { parseJson } from "../spec/rfc8259.ts";
import type { Refusal } from "./answers.ts";
import type { HttpRequest } from "./handler.ts";
import { hasMediaType, readText } from "./message.ts";

export async function readJson(
  request: HttpRequest,
  depthMax = CLAIMS_DEPTH_MAX,
): Promise<Result<Json, Refusal>> {
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
