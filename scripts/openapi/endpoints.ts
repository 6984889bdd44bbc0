/** Every endpoint of the service as its description has it: how it is called, and what it answers. */
import { FILTERS } from "../../src/audit/filters.ts";
import { EVENT_PARAMETERS } from "../../src/audit/query.ts";
import { Body as ConsentBody } from "../../src/policy/consent.ts";
import { JobOrder } from "../../src/policy/jobs.ts";
import { API_PATHS, type ApiPath } from "../../src/policy/own-target.ts";
import { Question } from "../../src/policy/question.ts";
import { WrittenOrder } from "../../src/policy/revocation.ts";
import { methodsFrom } from "../../src/settings/authentication-methods.ts";
import { AUTHORIZATION_PARAMETERS, TOKEN_PARAMETERS } from "../../src/spec/rfc6749.ts";
import { membersFor } from "../../src/spec/rfc7591-members.ts";
import type { AnswerName } from "./answers.ts";

type Method = "get" | "post" | "put" | "delete";

/** `html` is a page for a user, `none` an answer without a body. */
type Told = AnswerName | "html" | "none" | "picture" | "text";

export type Endpoint = {
  says: string;
  /** Who may call it. */
  by: "client" | "bearer" | "browser" | "public" | "issuer" | "provider";
  /** The scope of a token of ours that the endpoint takes. */
  scope?: string;
  /** The answers that are the endpoint's own, beside the refusals of every endpoint. */
  answers: Readonly<Record<number, Told>>;
  /** Statuses of refusals that are the endpoint's own. */
  refuses?: readonly number[];
  /** The parameters of the query, or of a form. */
  query?: readonly string[];
  headers?: readonly string[];
  form?: readonly string[];
  /** The schema that validates the body. */
  body?: Parameters<typeof import("@valibot/to-json-schema").toJsonSchema>[0];
  /** The media type of a body that is neither JSON nor a form. */
  bodyType?: string;
  /** JSON, NDJSON or CSV. */
  formats?: "events" | "checkpoints";
};

const AUTHENTICATION = ["client_id", "client_secret", "client_assertion_type", "client_assertion"];
const OF_OTHERS = ["username", "password", "token", "token_type_hint", "DPoP", "dpop"];
const TOKEN = [...TOKEN_PARAMETERS.filter((name) => !OF_OTHERS.includes(name)), "resource", "audience"];
const NAMED = [...AUTHENTICATION, "token", "token_type_hint"];
const CONDITIONS = ["If-Match", "If-None-Match"];

const document = (says: string, answer: AnswerName): { get: Endpoint } => ({
  get: { says, by: "public", headers: ["If-None-Match"], answers: { 200: answer, 304: "none" } },
});
const managed = (path: ApiPath, of: Omit<Endpoint, "by" | "scope">): Endpoint => ({
  ...of,
  by: "bearer",
  scope: API_PATHS[path],
});
const page = (says: string, of: Partial<Endpoint> = {}): Endpoint => ({
  says: `${says} With \`signIn\`.`,
  by: "browser",
  answers: { 200: "html", 303: "none" },
  refuses: [403, 404, 409, 429],
  ...of,
});
const registration = membersFor(Object.keys(methodsFrom("registration")));

/** The paths below the issuer; a segment in braces is a parameter. */
export const ENDPOINTS: Readonly<Record<string, Partial<Record<Method, Endpoint>>>> = {
  "/token": {
    post: {
      says: "Issues a token: client credentials, token exchange (RFC 8693), JWT authorization grants (RFC 7523), authorization codes, refresh tokens, polls.",
      by: "client",
      form: TOKEN,
      headers: ["DPoP"],
      answers: { 200: "Token" },
      refuses: [401, 429],
    },
  },
  "/introspect": {
    post: {
      says: "Says whether a token is active (RFC 7662).",
      by: "client",
      form: NAMED,
      answers: { 200: "Introspection" },
      refuses: [401, 429],
    },
  },
  "/revoke": {
    post: {
      says: "A client ends a token that was issued to it (RFC 7009).",
      by: "client",
      form: NAMED,
      headers: ["DPoP"],
      answers: { 200: "Nothing" },
      refuses: [401, 429],
    },
  },
  "/revocations": {
    post: managed("/revocations", {
      says: "Ends tokens by what they have in common, or shows which these are.",
      body: WrittenOrder,
      answers: { 200: "Revocation" },
    }),
  },
  "/jobs": {
    get: managed("/jobs", {
      says: "Jobs, the newest first.",
      query: ["iss", "sub", "agent", "after"],
      answers: { 200: "Jobs" },
    }),
    post: managed("/jobs", { says: "Makes a job.", body: JobOrder, answers: { 201: "Job" }, refuses: [409] }),
  },
  "/jobs/{id}": { get: managed("/jobs", { says: "What there is of a job.", answers: { 200: "Job" } }) },
  "/signals/{name}": {
    post: {
      says: "Takes a security event of a trusted issuer about its own subjects (RFC 8935).",
      by: "issuer",
      bodyType: "application/secevent+jwt",
      answers: { 202: "none" },
      refuses: [401, 404, 429],
    },
  },
  "/register": {
    post: {
      says: "A client registers itself (RFC 7591).",
      by: "bearer",
      body: registration,
      answers: { 201: "Client" },
      refuses: [401, 403, 404, 429],
    },
  },
  "/register/{client_id}": {
    get: { says: "A client reads its registration (RFC 7592).", by: "bearer", answers: { 200: "Client" } },
    put: {
      says: "A client changes its registration (RFC 7592).",
      by: "bearer",
      body: registration,
      answers: { 200: "Client" },
    },
    delete: { says: "A client removes itself (RFC 7592).", by: "bearer", answers: { 204: "none" } },
  },
  "/policy/explain": {
    post: managed("/policy/explain", {
      says: "What the token endpoint would answer, and why.",
      body: Question,
      answers: { 200: "Explanation" },
    }),
  },
  "/consents": {
    get: managed("/consents", {
      says: "Consents: a user's own, or all.",
      query: ["iss", "sub", "after", "limit"],
      answers: { 200: "Consents" },
    }),
  },
  "/consents/{id}": {
    get: managed("/consents", { says: "One consent.", answers: { 200: "Consent" } }),
    put: managed("/consents", {
      says: "Records a consent, or replaces it.",
      body: ConsentBody,
      headers: CONDITIONS,
      answers: { 200: "Consent", 201: "Consent" },
      refuses: [409, 412],
    }),
    delete: managed("/consents", {
      says: "Withdraws a consent.",
      headers: CONDITIONS,
      answers: { 204: "none" },
      refuses: [412],
    }),
  },
  "/audit/events": {
    get: managed("/audit/events", {
      says: `Events of the audit trail, by ${Object.keys(FILTERS).length} filters.`,
      query: EVENT_PARAMETERS,
      formats: "events",
      answers: { 200: "Events" },
      refuses: [406],
    }),
  },
  "/audit/checkpoints": {
    get: managed("/audit/checkpoints", {
      says: "Signed checkpoints of the audit trail.",
      query: ["limit", "cursor"],
      formats: "checkpoints",
      answers: { 200: "Checkpoints" },
      refuses: [406],
    }),
  },
  "/audit/receipts/{jti}": {
    get: managed("/audit/receipts", {
      says: "What proves that a token was issued, for its client, for who may ask about it, and with `audit:read`.",
      answers: { 200: "text", 202: "Pending" },
      refuses: [404],
    }),
  },
  "/audit/logs": {
    get: {
      says: "The keys of each log, as verifiers of receipts take them.",
      by: "public",
      answers: { 200: "Logs" },
    },
  },
  "/audit/logs/{log}": {
    get: managed("/audit/logs", {
      says: "The newest checkpoint of a log, as a signed note.",
      answers: { 200: "text" },
      refuses: [404],
    }),
  },
  "/audit/consistency/{log}": {
    get: managed("/audit/logs", {
      says: "The hashes that prove a log of `to` records to have grown from that of `from`, one a line.",
      query: ["from", "to"],
      answers: { 200: "text" },
      refuses: [404],
    }),
  },
  "/": { get: page("A page about this server.") },
  "/favicon.ico": { get: page("The page about this server.") },
  "/logo/{name}": { get: page("A logo.", { answers: { 200: "picture" } }) },
  "/authorize": { get: page("A client asks a user (RFC 6749 4.1).", { query: AUTHORIZATION_PARAMETERS }) },
  "/authorize/review": {
    get: page("The user sees what is asked.", { query: ["r"] }),
    post: page("The user decides.", { bodyType: "application/x-www-form-urlencoded" }),
  },
  "/ask": {
    get: page("The user sees the consent that an agent lacks.", { query: ["r"] }),
    post: page("The user gives it, or does not.", { bodyType: "application/x-www-form-urlencoded" }),
  },
  "/par": {
    post: {
      says: "An authorization request that is left beforehand (RFC 9126). With `signIn`.",
      by: "client",
      form: [...new Set([...AUTHENTICATION, ...AUTHORIZATION_PARAMETERS])],
      headers: ["DPoP"],
      answers: { 201: "Pushed" },
      refuses: [401, 404, 429],
    },
  },
  "/signin": { get: page("Sign-in at a provider.", { query: ["r", "ask"] }) },
  "/callback/{provider}": {
    get: page("The end of a sign-in.", { query: ["code", "state", "iss", "error"] }),
  },
  "/signout": { post: page("Signs out.", { bodyType: "application/x-www-form-urlencoded" }) },
  "/signed-out": { get: page("Says that the user has signed out.") },
  "/account": { get: page("What a user allowed, and what was done in their name.", { query: ["before"] }) },
  "/account/withdraw": {
    post: page("The user takes back what they allowed.", { bodyType: "application/x-www-form-urlencoded" }),
  },
  "/backchannel-logout/{provider}": {
    post: {
      says: "A provider says that a user signed out there. With `signIn`.",
      by: "provider",
      form: ["logout_token"],
      answers: { 200: "none" },
      refuses: [404, 429],
    },
  },
  "/rp/jwks/{provider}": {
    get: {
      says: "The keys with which this server proves itself to one provider. With `signIn`.",
      by: "public",
      headers: ["If-None-Match"],
      answers: { 200: "Keys", 304: "none" },
      refuses: [404],
    },
  },
  "/jwks": document("The public keys of our tokens, grants and security events.", "Keys"),
  "/openapi.json": document("This description.", "Description"),
  "/.well-known/oauth-authorization-server": document("Metadata of this server (RFC 8414).", "Metadata"),
  "/.well-known/openid-configuration": document("The same where readers of OpenID Connect look.", "Metadata"),
  "/.well-known/ssf-configuration": {
    get: {
      ...document("How security events are sent (OpenID SSF).", "Metadata").get,
      refuses: [404],
    },
  },
  ...Object.fromEntries(
    ["/api", ...Object.keys(API_PATHS)].map((path) => [
      `/.well-known/oauth-protected-resource${path}`,
      {
        get: {
          ...document(`Metadata of ${path} (RFC 9728).`, "ResourceMetadata").get,
          refuses: [404],
        },
      },
    ]),
  ),
};
