/**
 * A question to the policy (PROD-2.6-1) in claims instead of tokens, as `/policy/explain`, its command and the test
 * vectors of a policy ask it.
 */
import * as v from "valibot";
import type { Mode } from "../modes.ts";
import { err, ok, type Result } from "../result.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import { WrittenBounds } from "./jobs.ts";
import { describeIssue } from "./messages.ts";

const text = v.pipe(v.string(), v.nonEmpty("is empty"));

const claims = v.custom<JsonObject>((value) => isJsonObject(value as Json), "is not an object");

export const Question = v.strictObject({
  /** `client_id` of the caller; a workload without registration is its SPIFFE ID. */
  client: text,
  /** The SPIFFE ID that the caller would prove, where its `client_id` is not that. */
  workload: v.optional(text),
  /**
   * The subject at the issuer that first vouched for it, where the subject token is one of ours, and what that says of it
   * now, where rules demand something of that.
   */
  origin: v.optional(v.strictObject({ iss: text, sub: text, claims: v.optional(claims) })),
  /** The claims of the subject token; without them and a grant the question is about client credentials. */
  subjectClaims: v.optional(claims),
  /** The `subject_token_type` of a foreign subject token; if absent, a type that its issuer is trusted for. */
  subjectTokenType: v.optional(v.picklist(["jwt", "id_token", "access_token"])),
  /** The claims of a grant that is redeemed, instead of a subject token. */
  grantClaims: v.optional(claims),
  /** The kind of grant that its `typ` would name; if absent, a plain grant. */
  grantProfile: v.optional(v.picklist(["jwt", "id-jag"])),
  /**
   * The user who signed in, as their issuer names them, instead of a subject token: the question is about the code that a
   * client of people redeems.
   */
  signedIn: v.optional(v.strictObject({ iss: text, sub: text, claims: v.optional(claims) })),
  /** The SPIFFE ID in the actor token; without it the question is about impersonation. */
  actor: v.optional(text),
  target: v.optional(text),
  /** The scope, written as the parameter `scope`: with single spaces between. */
  scope: v.optional(
    v.pipe(
      text,
      v.check((scope) => scope.split(" ").every(isScopeToken), "is not a list of scopes"),
    ),
  ),
  /** The parameter `authorization_details`, as JSON. */
  details: v.optional(v.array(claims)),
  /** The requested type, written as in `requested_token_type`; if absent, the kind of target decides. */
  issues: v.optional(v.picklist(["access_token", "jwt", "id-jag", "txn_token"])),
  /** The job of the request, by its bounds. */
  job: v.optional(WrittenBounds),
  /** The APIs that an ID-JAG is to name. */
  resources: v.optional(v.array(text)),
});
export type Question = v.InferOutput<typeof Question>;

/** Reads a question; every problem comes back with its path. */
export function parseQuestion(json: Json): Result<Question, readonly string[]> {
  const parsed = v.safeParse(Question, json);
  if (!parsed.success) {
    return err(parsed.issues.map((issue) => describeIssue(issue, "the question")));
  }
  const { subjectClaims, subjectTokenType, grantClaims, grantProfile, signedIn, issues, resources } =
    parsed.output;
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
  // A client of people is no actor, whatever it could prove, and its product is an access token.
  const beside = [subjectClaims, grantClaims, parsed.output.workload, issues];
  if (signedIn !== undefined && beside.some((one) => one !== undefined)) {
    return err(["signedIn: is not for a question with subjectClaims, grantClaims, workload or issues"]);
  }
  // IDC-2.3.1-2: without a request for an ID-JAG, `resource` would be another name of the target.
  if (resources !== undefined && issues !== "id-jag") {
    return err(['resources: is only for a question with "issues": "id-jag"']);
  }
  // TXN-D-7: what a transaction token is made of is a subject token, and its requester is no actor.
  if (issues === "txn_token" && (subjectClaims === undefined || parsed.output.actor !== undefined)) {
    return err(['issues: "txn_token" is for a question with subjectClaims and without actor']);
  }
  return ok(parsed.output);
}

/** PROD-3-2, PROD-3-3: the members of the question choose the mode, as parameters do at the token endpoint. */
export function modeOf({ subjectClaims, grantClaims, signedIn, actor, issues }: Question): Mode {
  if (signedIn !== undefined) return "authorization_code";
  if (grantClaims !== undefined) return "redemption";
  if (subjectClaims === undefined) return "client_credentials";
  if (issues === "txn_token") return "transaction";
  return actor === undefined ? "impersonation" : "delegation";
}
