/**
 * OpenID Connect Core 1.0 (errata set 2), from the side of the relying party:
 * https://openid.net/specs/openid-connect-core-1_0.html, with Discovery 1.0:
 * https://openid.net/specs/openid-connect-discovery-1_0.html
 * Covers Core 3.1.2 the authentication request and its response, 3.1.3 the token request and the ID token, 9 the
 * client's own assertion; Discovery 3 and 4 the metadata of the provider.
 * Elsewhere: OIDC 3.1.2.1 people/flows/sign-in.ts; OIDC 3.1.2.6 people/flows/sign-in.ts, people/flows/told.ts; OIDC
 * 3.1.2.7 people/flows/sign-in.ts; OIDC 3.1.3.1 people/adapters/providers.ts, people/ports.ts; OIDC 3.1.3.7
 * people/flows/sign-in.ts; OIDC 5.7 people/flows/sign-in.ts; OIDC 9 config/sign-in.ts, people/http/provider-keys.ts;
 * OIDC 12.2 people/flows/recheck.ts; OIDC D people/flows/review.ts, people/flows/session.ts,
 * people/flows/sign-in.ts, people/http/sign-in.ts, people/pages/decision-parts.ts,
 * people/spec/rfc6749-authorization.ts, policy/judge.ts, policy/rules.ts, spec/rfc8725.ts; OIDCD 4
 * people/adapters/providers.ts; OIDCD 4.2 people/adapters/providers.ts; OIDCD 7.1 people/adapters/providers.ts;
 * OIDCL R3 people/http/sign-in.ts.
 */

import { METADATA_BYTES_MAX } from "../../limits/fetching.ts";
import { JSON_DEPTH_MAX } from "../../limits/input.ts";
import { NAME_CHARS_MAX } from "../../limits/people.ts";
import { SKEW_SECONDS } from "../../limits/tokens.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import { checkIdTokenUser, type IdTokenUserFailure, type SignInFacts } from "../../spec/oidc-user.ts";
import { parseFetchUrl } from "../../spec/rfc3986.ts";
import { decodeFormText } from "../../spec/rfc6749.ts";
import type { JwsHeader } from "../../spec/rfc7515.ts";
import { audiences, checkTimes } from "../../spec/rfc7519.ts";
import { isJsonObject, type Json, type JsonObject, parseJson } from "../../spec/rfc8259.ts";
import { type OtherIssuer, otherIssuer } from "../../spec/rfc8414.ts";
import { checkAlgorithm, checkKind, checkType, JWT_TYPES } from "../../spec/rfc8725.ts";
import type { SignInWishes } from "./rfc6749-authorization.ts";

// --- metadata of the provider (Discovery 3, 4) ------------------------------------------------------------------

export type ProviderMetadata = {
  authorizationEndpoint: string;
  tokenEndpoint: string;
  introspectionEndpoint?: string;
  endSessionEndpoint?: string;
  userInfoEndpoint?: string;
  /** Whether it names itself in every response (RFC 9207). */
  namesItself: boolean;
  /** Whether a user has the same `sub` for every client. */
  hasPublicSubjects: boolean;
};

type ProviderMetadataFailure =
  | { kind: "metadata_malformed" }
  | OtherIssuer
  | { kind: "metadata_member_missing"; member: string };

/** For the operator: which member it is that is missing, or no https URL, and both names where they differ. */
export function describeMetadataFailure(failure: ProviderMetadataFailure): string {
  if (failure.kind === "metadata_malformed") return failure.kind;
  return `${failure.kind}: ${"says" in failure ? failure.says : failure.member}`;
}

/** OIDCD-4-1: appended to the issuer, of which a final slash is removed for that and for nothing else. */
export const providerMetadataUrl = (issuer: string): string =>
  `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;

export function parseProviderMetadata(
  text: string,
  issuer: string,
): Result<ProviderMetadata, ProviderMetadataFailure> {
  const json = text.length > METADATA_BYTES_MAX ? undefined : parseJson(text, JSON_DEPTH_MAX);
  if (!json?.ok || !isJsonObject(json.value)) return err({ kind: "metadata_malformed" });
  const members = json.value;
  // OIDCD-4.3-1, OIDCD-7.2-1: identical to the configured issuer, slash and all, or the document is of another one.
  if (members.issuer !== issuer) return err(otherIssuer(members.issuer, issuer));
  const missing = (member: string) => err({ kind: "metadata_member_missing", member } as const);
  // OIDCD-3-1
  const authorizationEndpoint = webUrl(members.authorization_endpoint);
  if (authorizationEndpoint === undefined) return missing("authorization_endpoint");
  const tokenEndpoint = webUrl(members.token_endpoint);
  if (tokenEndpoint === undefined) return missing("token_endpoint");
  if (webUrl(members.jwks_uri) === undefined) return missing("jwks_uri");
  const { subject_types_supported: types } = members;
  return ok(
    defined<ProviderMetadata>({
      authorizationEndpoint,
      tokenEndpoint,
      introspectionEndpoint: webUrl(members.introspection_endpoint),
      endSessionEndpoint: webUrl(members.end_session_endpoint),
      userInfoEndpoint: webUrl(members.userinfo_endpoint),
      namesItself: members.authorization_response_iss_parameter_supported === true,
      hasPublicSubjects: !Array.isArray(types) || types.includes("public"),
    }),
  );
}

const webUrl = (value: Json | undefined): string | undefined =>
  typeof value === "string" && parseFetchUrl(value).ok ? value : undefined;

// --- the authentication request (3.1.2.1) -----------------------------------------------------------------------

export type AuthenticationRequest = {
  clientId: string;
  redirectUri: string;
  scopes: readonly string[];
  state: string;
  nonce: string;
  challenge: string;
  /** What the client's request asks of the sign-in. */
  wishes: SignInWishes;
  /** Of the provider's entry: the longest age of a sign-in, and the context classes that may be asked for. */
  maxAgeSeconds?: number;
  acrValues: readonly string[];
};

/** The longest age of the sign-in that is asked for; absent: any (OIDC-D-5). */
export function maxAgeOf(wishes: SignInWishes, own: number | undefined): number | undefined {
  if (wishes.prompt.includes("login")) return 0;
  const ages = [wishes.maxAgeSeconds, own].filter((age) => age !== undefined);
  return ages.length === 0 ? undefined : Math.min(...ages);
}

/** The URL at which the user signs in; a query that the endpoint has is kept. */
export function buildAuthenticationUrl(endpoint: string, request: AuthenticationRequest): string {
  const { wishes, acrValues } = request;
  // OIDC-3.1.2.1-5, OIDC-D-5: never `none` and never `consent`, which is asked on our own page.
  const prompt = wishes.prompt.filter((one) => one !== "consent").join(" ");
  const maxAge = maxAgeOf(wishes, request.maxAgeSeconds);
  const asked = wishes.acrValues.filter((one) => acrValues.includes(one));
  const acr = (asked.length > 0 ? asked : acrValues).join(" ");
  const parameters = defined<Record<string, string>>({
    response_type: "code",
    client_id: request.clientId,
    redirect_uri: request.redirectUri, // OIDC-3.1.2.1-2
    scope: [...new Set(["openid", ...request.scopes])].join(" "), // OIDC-3.1.2.1-1
    state: request.state, // OIDC-3.1.2.1-3
    nonce: request.nonce, // OIDC-3.1.2.1-4
    code_challenge: request.challenge,
    code_challenge_method: "S256",
    prompt: prompt === "" ? undefined : prompt,
    max_age: maxAge === undefined ? undefined : String(maxAge),
    acr_values: acr === "" ? undefined : acr,
    ui_locales: wishes.uiLocales,
  });
  const query = new URLSearchParams(parameters).toString();
  return `${endpoint}${endpoint.includes("?") ? "&" : "?"}${query}`;
}

// --- the response (3.1.2.5, 3.1.2.6) ----------------------------------------------------------------------------

export type AuthenticationResponse = { state: string; code?: string; error?: string; iss?: string };
type AuthenticationResponseFailure = { kind: "callback_malformed" };

const PARAMETERS = ["state", "code", "error", "iss"] as const;

/** RFC 6749 A.11: nothing else is sent on to the provider, since the query may come from anyone. */
const CODE = /^[\x20-\x7e]+$/;

/** The response in the query of the callback; each parameter at most once, others are not looked at. */
export function parseAuthenticationResponse(
  query: string,
): Result<AuthenticationResponse, AuthenticationResponseFailure> {
  const found: Partial<Record<(typeof PARAMETERS)[number], string>> = {};
  for (const pair of query.split("&")) {
    const [rawName = "", ...rest] = pair.split("=");
    const name = PARAMETERS.find((one) => one === decodeFormText(rawName));
    if (name === undefined) continue;
    const value = decodeFormText(rest.join("="));
    if (value === undefined || found[name] !== undefined) return err({ kind: "callback_malformed" });
    found[name] = value;
  }
  const { state, code, error } = found;
  if (state === undefined || (code === undefined) === (error === undefined)) {
    return err({ kind: "callback_malformed" });
  }
  if (code !== undefined && !CODE.test(code)) return err({ kind: "callback_malformed" });
  return ok({ ...found, state });
}

/** OIDC-D-1: the response is that of the provider to which the user was sent. */
export function checkResponseIssuer(
  { iss }: AuthenticationResponse,
  issuer: string,
  { namesItself }: ProviderMetadata,
): Result<undefined, { kind: "callback_issuer_missing" | "callback_issuer_differs" }> {
  if (iss === undefined) return namesItself ? err({ kind: "callback_issuer_missing" }) : ok(undefined);
  return iss === issuer ? ok(undefined) : err({ kind: "callback_issuer_differs" });
}

/** OIDCL-R3-1: where the user may end the session at the provider too; without an ID token it may ask them. */
export function buildEndSessionUrl(endpoint: string, clientId: string, backTo: string): string {
  const query = new URLSearchParams({ client_id: clientId, post_logout_redirect_uri: backTo });
  return `${endpoint}${endpoint.includes("?") ? "&" : "?"}${query}`;
}

// --- the token request (3.1.3.1, 9) -----------------------------------------------------------------------------

/** How long an assertion of ours is good. */
const ASSERTION_SECONDS = 60;

/** OIDC-9-1, OIDC-9-2: for one request, and to one audience, which the operator knows and no metadata name. */
export const buildClientAssertion = (
  { clientId, audience }: { clientId: string; audience: string },
  nowSeconds: number,
  jti: string,
): JsonObject => ({
  iss: clientId,
  sub: clientId,
  aud: audience,
  jti,
  iat: nowSeconds,
  exp: nowSeconds + ASSERTION_SECONDS,
});

type AnswerMalformed = { kind: "provider_answer_malformed" };
const MALFORMED = err<AnswerMalformed>({ kind: "provider_answer_malformed" });

/** What a token endpoint gave; the access token is of use at the provider's userinfo endpoint alone. */
export type ProviderTokens = { idToken?: string; refreshToken?: string; accessToken?: string };

/** OIDC-3.1.3.3-1: the answer to a code, which has an ID token. */
export function parseTokenAnswer(
  text: string,
): Result<ProviderTokens & { idToken: string }, AnswerMalformed> {
  const tokens = parseRefreshAnswer(text);
  if (!tokens.ok) return tokens;
  const { idToken } = tokens.value;
  return idToken === undefined ? MALFORMED : ok({ ...tokens.value, idToken });
}

/** The answer to a refresh token, which may have an ID token (OIDC-12.2-1). */
export function parseRefreshAnswer(text: string): Result<ProviderTokens, AnswerMalformed> {
  const json = parseJson(text, JSON_DEPTH_MAX);
  if (!json.ok || !isJsonObject(json.value)) return MALFORMED;
  const { id_token: idToken, refresh_token: refreshToken, token_type: tokenType } = json.value;
  const { access_token: accessToken } = json.value;
  const isText = (value: Json | undefined): value is string | undefined =>
    value === undefined || (typeof value === "string" && value !== "");
  const isBearer = typeof tokenType === "string" && tokenType.toLowerCase() === "bearer";
  if (!isBearer || !isText(idToken) || !isText(refreshToken) || !isText(accessToken)) return MALFORMED;
  return ok(defined<ProviderTokens>({ idToken, refreshToken, accessToken }));
}

/** OIDC-D-6, PCL-D-8: what the userinfo endpoint says, as JSON; a signed answer is not read. */
export function parseUserInfo(text: string): Result<JsonObject, AnswerMalformed> {
  const json = parseJson(text, JSON_DEPTH_MAX);
  return json.ok && isJsonObject(json.value) ? ok(json.value) : MALFORMED;
}

/** RFC 7662 2.2: whether the token is active, by the answer of the provider's introspection endpoint. */
export function parseActive(text: string): Result<boolean, AnswerMalformed> {
  const json = parseJson(text, JSON_DEPTH_MAX);
  const active = json.ok && isJsonObject(json.value) ? json.value.active : undefined;
  return typeof active === "boolean" ? ok(active) : MALFORMED;
}

/** RFC 6749 5.2: the error code of a refusal, as it may be put on record; undefined where there is none of that form. */
export function parseTokenError(text: string): string | undefined {
  const json = parseJson(text, JSON_DEPTH_MAX);
  return json.ok && isJsonObject(json.value) ? readErrorCode(json.value.error) : undefined;
}

/** RFC 6749 4.1.2.1 and 5.2 permit more characters; every registered code has these alone. */
const ERROR_CODE = /^[A-Za-z0-9._-]{1,64}$/;

export const readErrorCode = (error: unknown): string | undefined =>
  typeof error === "string" && ERROR_CODE.test(error) ? error : undefined;

// --- the ID token (2, 3.1.3.7) ----------------------------------------------------------------------------------

/** What an ID token has to say to be the answer to this request. */
export type IdTokenRule = {
  issuer: string;
  clientId: string;
  algorithm: string;
  nonce: string;
  nowSeconds: number;
  /** When the user was sent to the provider. */
  startedAtSeconds: number;
  maxAgeSeconds?: number;
  /** The context classes of which one is required; empty: any. */
  requiredAcr: readonly string[];
};

type IdTokenFailure =
  | (ReturnType<typeof checkType> & { ok: false })["error"]
  | (ReturnType<typeof checkAlgorithm> & { ok: false })["error"]
  | (ReturnType<typeof checkKind> & { ok: false })["error"]
  | (ReturnType<typeof checkTimes> & { ok: false })["error"]
  | (ReturnType<typeof audiences> & { ok: false })["error"]
  | IdTokenUserFailure
  | {
      kind:
        | "id_token_issuer_differs"
        | "jwt_audience_several"
        | "azp_differs"
        | "nonce_missing"
        | "nonce_differs"
        | "acr_refused"
        | "auth_time_missing"
        | "auth_time_too_old";
    };

const IAT_AGE_SECONDS = 300;

/** The header, before a key is looked for. OIDC-3.1.3.7-1: an encrypted token was refused before it was parsed. */
export function checkIdTokenHeader(
  header: JwsHeader,
  { algorithm }: Pick<IdTokenRule, "algorithm">,
): Result<undefined, IdTokenFailure> {
  const type = checkType(header, JWT_TYPES.idToken);
  if (!type.ok) return type;
  // OIDC-3.1.3.7-7, OIDC-3.1.3.7-8: the one algorithm that is agreed with the provider, never a symmetric one or none.
  return checkAlgorithm(header, [algorithm]);
}

/** OIDC-3.1.3.7, clause by clause; the signature was verified with a key of the issuer (OIDC-3.1.3.7-6). */
export function checkIdToken(claims: JsonObject, rule: IdTokenRule): Result<SignInFacts, IdTokenFailure> {
  const refused = (kind: (IdTokenFailure & { claim?: never; typ?: never; alg?: never })["kind"]) =>
    err({ kind } as IdTokenFailure);
  const kind = checkKind(claims, "signIn");
  if (!kind.ok) return kind;
  // OIDC-3.1.3.7-2, OIDCD-4.3-2
  if (claims.iss !== rule.issuer) return refused("id_token_issuer_differs");
  // OIDC-3.1.3.7-3: meant for us and for no other, as a string or as an array of one.
  const named = audiences(claims);
  if (!named.ok) return named;
  if (named.value.length > 1) return refused("jwt_audience_several");
  if (named.value[0] !== rule.clientId) return err({ kind: "jwt_audience_refused" });
  // OIDC-3.1.3.7-4
  if (claims.azp !== undefined && claims.azp !== rule.clientId) return refused("azp_differs");
  // OIDC-3.1.3.7-9, OIDC-3.1.3.7-10: not expired, issued just now.
  const times = checkTimes(claims, {
    nowSeconds: rule.nowSeconds,
    skewSeconds: SKEW_SECONDS,
    ageSecondsMax: IAT_AGE_SECONDS,
  });
  if (!times.ok) return times;
  const user = checkIdTokenUser(claims);
  if (!user.ok) return user;
  // OIDC-3.1.3.7-11: made for this very request, so that no other sign-in's token can take its place.
  if (claims.nonce === undefined) return refused("nonce_missing");
  if (claims.nonce !== rule.nonce) return refused("nonce_differs");
  // OIDC-3.1.3.7-12
  const { acr } = claims;
  const hasAcr = typeof acr === "string" && rule.requiredAcr.includes(acr);
  if (rule.requiredAcr.length > 0 && !hasAcr) return refused("acr_refused");
  // OIDC-3.1.3.7-13, OIDC-3.1.2.1-6: counted from when the user was sent, as reading a page takes its time.
  const { auth_time: authTime } = claims;
  if (rule.maxAgeSeconds !== undefined) {
    if (!isSeconds(authTime)) return refused("auth_time_missing");
    const oldest = rule.startedAtSeconds - rule.maxAgeSeconds - SKEW_SECONDS;
    if (authTime < oldest) return refused("auth_time_too_old");
  }
  return ok(
    defined<SignInFacts>({
      authTimeSeconds: isSeconds(authTime) ? Math.floor(authTime) : undefined,
      acr: typeof acr === "string" ? acr : undefined,
    }),
  );
}

/**
 * OIDC-12.2-1: an ID token beside a refreshed access token is of the same issuer and for us. Nothing is taken from it, and
 * it comes straight from the provider, so that its signature is not verified (OIDC-3.1.3.7-5).
 */
export function checkRefreshedIdToken(
  claims: JsonObject,
  { issuer, clientId }: Pick<IdTokenRule, "issuer" | "clientId">,
): boolean {
  const named = audiences(claims);
  return claims.iss === issuer && named.ok && named.value.includes(clientId);
}

const isSeconds = (value: Json | undefined): value is number =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;

/** OIDC-D-6: a name to be shown, of the ID token and nowhere else; it is never an identity (OIDC-5.7-1). */
export function displayName(claims: JsonObject): string | undefined {
  const names = [claims.name, claims.preferred_username, claims.email];
  return names.find((one): one is string => typeof one === "string" && one !== "");
}

/** PAGE-D-30: the time zone of the user's account there, to be shown and no more; whether there is such a zone is not looked at. */
export const zoneInfo = ({ zoneinfo }: JsonObject): string | undefined =>
  typeof zoneinfo === "string" && zoneinfo.length <= NAME_CHARS_MAX ? zoneinfo : undefined;

/** OIDC-D-6: only where the provider says that the address is the user's; to be shown, and no identity either. */
export function verifiedMail({ email, email_verified: verified }: JsonObject): string | undefined {
  return verified === true && typeof email === "string" && email !== "" ? email : undefined;
}
