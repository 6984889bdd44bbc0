/**
 * A question to the policy (product document 2.6) in claims instead of tokens: what `/policy/explain`, its command
 * and the test vectors of a policy have in common.
 */
import * as v from "valibot";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import { isJsonObject } from "../spec/rfc8259.ts";
import type { Mode } from "./rules.ts";

const text = v.pipe(v.string(), v.nonEmpty("is empty"));

const claims = v.custom<JsonObject>((value) => isJsonObject(value as Json), "is not an object");

const Question = v.strictObject({
  /** `client_id` of the caller; a workload without registration is its SPIFFE ID. */
  client: text,
  /** The SPIFFE ID that the caller would prove, if the client alone does not say it. */
  workload: v.optional(text),
  /** Who first vouched for the subject, where the subject token is one of ours. */
  origin: v.optional(v.strictObject({ iss: text, sub: text })),
  /** Claims of the subject token; without them and a grant the question is about client credentials. */
  subjectClaims: v.optional(claims),
  /** As what a foreign subject token is sent; absent: as what its issuer is trusted for. */
  subjectTokenType: v.optional(v.picklist(["jwt", "id_token"])),
  /** Claims of a grant that is redeemed, instead of a subject token. */
  grantClaims: v.optional(claims),
  /** Which its `typ` would say; absent: a plain grant. */
  grantProfile: v.optional(v.picklist(["jwt", "id-jag"])),
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
  /** As `requested_token_type`; absent: the target decides. */
  issues: v.optional(v.picklist(["access_token", "jwt", "id-jag"])),
  /** What an ID-JAG is to name. */
  resources: v.optional(v.array(text)),
});
export type Question = v.InferOutput<typeof Question>;

/** Every problem comes back with its path. */
export function parseQuestion(json: Json): Result<Question, readonly string[]> {
  const parsed = v.safeParse(Question, json);
  if (!parsed.success) {
    return err(parsed.issues.map((issue) => `${v.getDotPath(issue) ?? "the question"}: ${issue.message}`));
  }
  const { subjectClaims, subjectTokenType, grantClaims, grantProfile, issues, resources } = parsed.output;
  const ofSubject = parsed.output.actor ?? parsed.output.origin ?? subjectTokenType;
  if (subjectClaims === undefined && ofSubject !== undefined) {
    return err(["subjectClaims: is missing beside actor, origin or subjectTokenType"]);
  }
  if (grantClaims === undefined && grantProfile !== undefined) {
    return err(["grantClaims: is missing beside grantProfile"]);
  }
  if (subjectClaims !== undefined && grantClaims !== undefined) {
    return err(["grantClaims: is not for a question with subjectClaims"]);
  }
  // IDC-2.3.1-2: of anything else it would be the target.
  if (resources !== undefined && issues !== "id-jag") {
    return err(['resources: is only for a question with "issues": "id-jag"']);
  }
  return ok(parsed.output);
}

/** PROD-3-2, PROD-3-3: what is sent chooses the mode, as at the token endpoint. */
export function modeOf({ subjectClaims, grantClaims, actor }: Question): Mode {
  if (grantClaims !== undefined) return "redemption";
  if (subjectClaims === undefined) return "client_credentials";
  return actor === undefined ? "impersonation" : "delegation";
}
