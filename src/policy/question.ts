/**
 * A question to the policy (product document 2.6) in claims instead of tokens: what `/policy/explain`, its command
 * and the test vectors of a policy have in common.
 */
import * as v from "valibot";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Json, JsonObject } from "../spec/json.ts";
import { isJsonObject } from "../spec/json.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import type { Mode } from "./rules.ts";

const text = v.pipe(v.string(), v.nonEmpty("is empty"));

const Question = v.strictObject({
  /** `client_id` of the caller; a workload without registration is its SPIFFE ID. */
  client: text,
  /** The SPIFFE ID that the caller would prove, if the client alone does not say it. */
  workload: v.optional(text),
  /** Who first vouched for the subject, where the subject token is one of ours. */
  origin: v.optional(v.strictObject({ iss: text, sub: text })),
  /** Claims of the subject token; without them the question is about client credentials. */
  subjectClaims: v.optional(v.custom<JsonObject>((value) => isJsonObject(value as Json), "is not an object")),
  /** SPIFFE ID in the actor token; without it the question is about impersonation. */
  actor: v.optional(text),
  target: v.optional(text),
  /** As the parameter: scopes with single spaces between. */
  scope: v.optional(
    v.pipe(
      text,
      v.check((scope) => scope.split(" ").every(isScopeToken), "is not a list of scopes"),
    ),
  ),
  issues: v.optional(v.literal("access_token")),
});
export type Question = v.InferOutput<typeof Question>;

/** Every problem comes back with its path. */
export function parseQuestion(json: Json): Result<Question, readonly string[]> {
  const parsed = v.safeParse(Question, json);
  if (!parsed.success) {
    return err(parsed.issues.map((issue) => `${v.getDotPath(issue) ?? "the question"}: ${issue.message}`));
  }
  const { subjectClaims, actor, origin } = parsed.output;
  if (subjectClaims === undefined && (actor !== undefined || origin !== undefined)) {
    return err(["subjectClaims: is missing beside actor or origin"]);
  }
  return ok(parsed.output);
}

/** PROD-3-2, PROD-3-3: what is sent chooses the mode, as at the token endpoint. */
export function modeOf({ subjectClaims, actor }: Question): Mode {
  if (subjectClaims === undefined) return "client_credentials";
  return actor === undefined ? "impersonation" : "delegation";
}
