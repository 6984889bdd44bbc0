/**
 * RFC 6749, The OAuth 2.0 Authorization Framework: https://www.rfc-editor.org/rfc/rfc6749.html
 * Covers 2.3.1 client password, 3.2 token endpoint parameters, 3.3 scope, 5 responses, appendix A and B grammars.
 * Elsewhere: 2 spec/rfc7591.ts; 2.2 cli/clients/secret-clients.ts, spec/rfc7521.ts, spec/rfc7591.ts; 2.3
 * spec/rfc7521.ts; 2.3.1 adapters/proof-queue.ts, adapters/throttle.ts, config/clients.ts,
 * flows/authenticate-client.ts, flows/verify-assertion.ts, flows/verify-secret.ts, http/bearer.ts, http/form.ts,
 * people/http/backchannel-logout.ts, spec/rfc7521.ts; 2.3.2 spec/rfc8705.ts, spec/spiffe/client-auth.ts; 3.1
 * people/flows/authorize.ts; 3.1.2 people/spec/rfc9207.ts, spec/rfc8252.ts; 3.1.2.2 config/client-schema.ts,
 * spec/rfc7591.ts; 3.1.2.4 people/flows/read-authorization.ts; 3.2 config/schema.ts, http/answers.ts, http/router.ts;
 * 3.2.1 flows/authenticate-client.ts, spec/rfc7521.ts; 3.3 cli/policy/vectors.ts, policy/judge.ts; 4.1.1
 * people/flows/read-authorization.ts; 4.1.2 flows/people.ts, flows/refusal.ts, limits/people.ts,
 * people/flows/decide-review.ts, people/flows/redeem-code.ts, people/flows/told.ts; 4.1.2.1 people/flows/authorize.ts,
 * people/flows/decide-review.ts, people/flows/read-authorization.ts, people/flows/told.ts, people/spec/rfc9207.ts;
 * 4.1.3 flows/verify-public.ts, people/flows/redeem-code.ts, people/records.ts; 4.4 flows/verify-platform.ts,
 * http/token.ts; 4.4.2 flows/order/grant-type.ts, http/token.ts; 4.5 flows/order/grant-type.ts; 5.1 flows/issue.ts,
 * http/answers.ts, http/token.ts; 5.2 flows/order/grant-type.ts, flows/token-request.ts, flows/verify-secret.ts,
 * http/answers.ts, http/errors.ts, http/form.ts, http/message.ts, http/token.ts, people/flows/ask-user.ts; 6
 * flows/verify-public.ts, people/flows/judge-refresh.ts, people/flows/refresh.ts; 7 flows/authorize-api.ts; 10.1
 * http/token.ts, settings/client-metadata.ts; 10.2 flows/verify-public.ts, http/token.ts, spec/rfc7591.ts; 10.3
 * adapters/crypto/signer.ts, http/log.ts; 10.4 people/flows/judge-refresh.ts, people/flows/refresh.ts; 10.5
 * flows/refusal.ts, people/flows/redeem-code.ts, records.ts; 10.6 config/client-schema.ts,
 * people/flows/read-authorization.ts, people/flows/redeem-code.ts; 10.10 adapters/crypto/random.ts,
 * cli/clients/secret-clients.ts, flows/register-client.ts, ports.ts; 10.12 people/flows/decision.ts; 10.13
 * people/http/page-answers.ts; 10.14 flows/order/subject.ts, http/message.ts, policy/targets.ts, policy/worded.ts; B
 * http/body.ts, http/handler.ts.
 */

import { err, ok, type Result } from "../result.ts";
import type { Detail } from "./rfc9396.ts";

export const CLIENT_CREDENTIALS = "client_credentials";
export const AUTHORIZATION_CODE = "authorization_code";
export const REFRESH_TOKEN = "refresh_token";

// --- form (3.2, appendix B) -----------------------------------------------------------------------------------

export const TOKEN_PARAMETERS = [
  "grant_type",
  "scope",
  "client_id",
  "client_secret",
  "client_assertion_type",
  "client_assertion",
  "assertion",
  "subject_token",
  "subject_token_type",
  "actor_token",
  "actor_token_type",
  "requested_token_type",
  "authorization_details",
  // TXN-11.1-2: what a transaction token is to say of its call.
  "request_context",
  "request_details",
  "code",
  "code_verifier",
  "redirect_uri",
  "refresh_token",
  "username",
  "password",
  // RFC 7009 2.1, RFC 7662 2.1: the parameters of the other endpoints that take a form.
  "token",
  "token_type_hint",
  // RFC 9449 4.1: `DPoP` is the name of a header field; it is known here so that a proof in the wrong place is not
  // ignored.
  "DPoP",
  "dpop",
  // RFC6749-8.2-1, RFC6749-8.2-2: what is ours begins with our name, so that it cannot become another's parameter.
  // NAME-D-7: why the agent asks, in its own words.
  "mandate_reason",
  // DTR-5.3-2: whether the client can wait for its user, and the code with which it asks again.
  "completion_mode",
  "deferral_code",
  // JOB-D-9: the job that the client chooses, or the one that it asks for.
  "mandate_job",
  "mandate_job_request",
] as const;
const REPEATABLE = ["resource", "audience"] as const;

type Single = (typeof TOKEN_PARAMETERS)[number];
type Repeatable = (typeof REPEATABLE)[number];

/** The parameters whose values stand in files of workloads. */
const LINES: readonly string[] = ["subject_token", "actor_token", "assertion", "client_assertion"];

/** The parameters that we know of a request to the token, revocation or introspection endpoint, each value decoded once. */
export type Form = Readonly<Partial<Record<Single, string>>> &
  Readonly<Record<Repeatable, readonly string[]>>;

type FormFailure =
  | { kind: "form_encoding_malformed"; parameter?: never }
  | { kind: "parameter_repeated"; parameter: string }
  | { kind: "parameter_malformed"; parameter: string };

const isSingle = (name: string): name is Single => (TOKEN_PARAMETERS as readonly string[]).includes(name);
const isRepeatable = (name: string): name is Repeatable => (REPEATABLE as readonly string[]).includes(name);

/** Whether a form may hold this parameter, which therefore must not be sent in the request URI. */
export const isTokenParameter = (name: string): boolean => isSingle(name) || isRepeatable(name);

/** The names of an authorization request (3.1), of which each may come once; `resource` is not among them. */
export const AUTHORIZATION_PARAMETERS = [
  "response_type",
  "client_id",
  "redirect_uri",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
  "response_mode",
  "prompt",
  "max_age",
  "acr_values",
  "ui_locales",
  "request",
  "request_uri",
  "authorization_details",
  "dpop_jkt",
  "mandate_reason",
  "mandate_job",
  "mandate_job_request",
  "completion_mode",
] as const;

/** Whether a parameter of any endpoint has this name; any other name may be a secret in the wrong place. */
export const isKnownParameter = (name: string): boolean =>
  isTokenParameter(name) || (AUTHORIZATION_PARAMETERS as readonly string[]).includes(name);

/** Parses the `application/x-www-form-urlencoded` body of a request that authenticates a client. */
export function parseForm(body: string): Result<Form, FormFailure> {
  const single: Partial<Record<Single, string>> = {};
  const repeated: Record<Repeatable, string[]> = { resource: [], audience: [] };
  const unknown = new Set<string>();
  for (const pair of body.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decodeFormText(equals < 0 ? pair : pair.slice(0, equals));
    let value = decodeFormText(equals < 0 ? "" : pair.slice(equals + 1));
    if (name === undefined || value === undefined) return err({ kind: "form_encoding_malformed" });
    const repeatable = isRepeatable(name);
    if (!repeatable && !isSingle(name)) {
      // RFC6749-10.14-1: NUL ends a text for some readers and not for others, and a repeated parameter is read
      // differently too.
      if (name.includes("\0") || value.includes("\0")) {
        return err({ kind: "parameter_malformed", parameter: name });
      }
      // RFC6749-3.2-7
      if (value !== "" && unknown.has(name)) return err({ kind: "parameter_repeated", parameter: name });
      // RFC6749-3.2-6: otherwise unknown parameters are ignored.
      if (value !== "") unknown.add(name);
      continue;
    }
    // RFC6749-3.2-5: a parameter without a value counts as omitted, so it is no repetition either.
    if (value === "") continue;
    // RFC6749-10.14-1: no known parameter may hold control characters.
    if (hasControl(value)) {
      // FEDC-D-5: federation clients send a token file as it is, with the line break at its end.
      const cut = LINES.includes(name) ? value.replace(/\r?\n$/, "") : value;
      if (cut === "" || hasControl(cut)) return err({ kind: "parameter_malformed", parameter: name });
      value = cut;
    }
    // RFC6749-3.2-7, RFC8707-2-5, PROD-4.1-29: only resource and audience may come twice.
    if (repeatable) repeated[name].push(value);
    else if (single[name] !== undefined) return err({ kind: "parameter_repeated", parameter: name });
    else single[name] = value;
  }
  return ok({ ...single, ...repeated });
}

const FORM_UNSAFE = /[%+]/;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** RFC6749-B-2: undoes the percent-encoding, then reads the octets as UTF-8; undefined if either is malformed. */
export function decodeFormText(text: string): string | undefined {
  if (!FORM_UNSAFE.test(text)) return text;
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || unit === 0x7f) return true;
  }
  return false;
}

// --- client password (2.3.1) ------------------------------------------------------------------------------------

type ClientPassword = { clientId: string; secret: string };

/** The client's credentials in an `Authorization: Basic` header; the scheme is compared without case. */
export function parseAuthorization(
  header: string,
): Result<ClientPassword, { kind: "authorization_malformed" }> {
  const malformed = err({ kind: "authorization_malformed" } as const);
  const match = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header);
  if (match?.[1] === undefined) return malformed;
  let text: string;
  try {
    const bytes = Uint8Array.fromBase64(match[1], { lastChunkHandling: "strict" });
    text = utf8.decode(bytes);
  } catch {
    return malformed;
  }
  // RFC6749-2.3.1-2: split at the first colon, then form-decode both halves; the undecoded text is never tried.
  const colon = text.indexOf(":");
  if (colon < 0) return malformed;
  const clientId = decodeFormText(text.slice(0, colon));
  const secret = decodeFormText(text.slice(colon + 1));
  if (!clientId || !secret || hasControl(clientId) || hasControl(secret)) return malformed;
  return ok({ clientId, secret });
}

// --- scope (3.3) ------------------------------------------------------------------------------------------------

const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/;

/** RFC6749-3.3-1: case-sensitive scope tokens separated by single spaces; order and repetition have no meaning. */
export function parseScope(scope: string): Result<readonly string[], { kind: "scope_malformed" }> {
  if (!SCOPE.test(scope)) return err({ kind: "scope_malformed" });
  return ok([...new Set(scope.split(" "))]);
}

/** RFC 6749 3.3: whether the text is one scope token. */
export const isScopeToken = (text: string): boolean => SCOPE.test(text) && !text.includes(" ");

// --- responses (5) ----------------------------------------------------------------------------------------------

/** RFC6749-5.1-1, RFC8693-2.2.1-3: the members of a successful token response, all at the top level. */
export type TokenAnswer = {
  access_token: string;
  /** RFC6749-8.1-1, RFC6750-4-1: only registered token types. */
  token_type: "Bearer" | "DPoP" | "N_A";
  expires_in: number;
  scope: string;
  /** RFC9396-7-1 */
  authorization_details?: readonly Detail[];
  /** RFC6749-5.1-3 */
  refresh_token?: string;
  /** RTE-6.1-2: how long it, or the one that was presented, lasts unused, and at the latest. */
  refresh_token_timeout?: number;
  authorization_expires_in?: number;
  issued_token_type?: string;
  /** After the redemption of an ID-JAG that names an API: the API that the token is for. */
  resource?: string;
  /** The job that the token was issued for, and when that ends, in seconds since 1970. */
  mandate_job_id?: string;
  mandate_job_expires_at?: number;
};

/** RFC 6749 5.2: the members of an error response, all at the top level; the last four are those of a deferred answer. */
export type ErrorAnswer = {
  error: ErrorCode;
  error_description: string;
  error_uri?: string;
  mandate_job_error?: string;
  interaction_uri?: string;
  deferral_code?: string;
  expires_in?: number;
  interval?: number;
};

export type ErrorCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "unauthorized_client"
  | "unsupported_grant_type"
  | "invalid_scope"
  | "invalid_target"
  | "invalid_authorization_details"
  | "unsupported_token_type"
  | "invalid_dpop_proof"
  | "use_dpop_nonce"
  | "interaction_required"
  | "slow_down"
  | "access_denied"
  | "expired_token"
  | "temporarily_unavailable"
  | "server_error";

// --- refresh tokens (6, 10.4) -----------------------------------------------------------------------------------

/**
 * REFRESH-D-2: a client asks for this scope to go on without the user; no target has it, and no access token shows it.
 */
export const OFFLINE_ACCESS = "offline_access";

const PREFIX = "mrt_";

/** RFC6749-10.4-6: a refresh token holds 256 random bits in base64url. */
export const buildRefreshToken = (secret: string): string => `${PREFIX}${secret}`;

/** Whether the text has the form of a refresh token of ours. */
export const isRefreshToken = (text: string): boolean => /^mrt_[A-Za-z0-9_-]{43}$/.test(text);
