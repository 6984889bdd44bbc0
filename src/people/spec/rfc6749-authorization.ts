/**
 * RFC 6749, The OAuth 2.0 Authorization Framework: https://www.rfc-editor.org/rfc/rfc6749.html
 * Covers 3.1 the authorization endpoint, 3.1.2 redirection, 4.1.1 the authorization request; with `resource` (RFC 8707),
 * the challenge (RFC 7636), the key of a code (RFC 9449), and of OpenID Connect the parameters that a provider may be asked to heed.
 */
import { STATE_BYTES_MAX } from "../../limits/people.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import { AUTHORIZATION_PARAMETERS, decodeFormText, parseScope } from "../../spec/rfc6749.ts";
import { fitsBytes } from "../../spec/rfc8259.ts";
import { checkResources, type TargetFailure } from "../../spec/rfc8707.ts";
import { type Detail, type DetailsFailure, parseDetails } from "../../spec/rfc9396.ts";
import { type KeyParameterFailure, parseKeyParameter } from "../../spec/rfc9449.ts";
import { type ChallengeFailure, parseChallenge } from "./rfc7636.ts";

// --- the form (3.1) ---------------------------------------------------------------------------------------------

type Single = (typeof AUTHORIZATION_PARAMETERS)[number];

/** The parameters of an authorization request that we know, each decoded once. */
export type AuthorizationForm = Readonly<Partial<Record<Single, string>>> & {
  readonly resource: readonly string[];
};

const isSingle = (name: string): name is Single =>
  (AUTHORIZATION_PARAMETERS as readonly string[]).includes(name);

type AuthorizationFormFailure = {
  kind: "form_encoding_malformed" | "parameter_repeated" | "parameter_malformed";
  /** Absent where the form as a whole cannot be read. */
  parameter?: string;
};

/** Control characters, among them those that end a line of a header field. */
const CONTROL = /[\p{Cc}]/u;

/** Parses the query of `/authorize`, or the form of a pushed request (RFC9126-2-3). */
export function parseAuthorizationForm(text: string): Result<AuthorizationForm, AuthorizationFormFailure> {
  const single: Partial<Record<Single, string>> = {};
  const resource: string[] = [];
  const unknown = new Set<string>();
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decodeFormText(equals < 0 ? pair : pair.slice(0, equals));
    const value = decodeFormText(equals < 0 ? "" : pair.slice(equals + 1));
    if (name === undefined || value === undefined) return err({ kind: "form_encoding_malformed" });
    // RFC6749-3.1-6: a parameter without a value counts as omitted, and an unknown one is ignored, though not twice.
    if (value === "") continue;
    if (CONTROL.test(value)) return err({ kind: "parameter_malformed", parameter: name });
    if (name === "resource") resource.push(value);
    else if (!isSingle(name)) {
      if (unknown.has(name)) return err({ kind: "parameter_repeated", parameter: name });
      unknown.add(name);
    } else if (single[name] !== undefined) return err({ kind: "parameter_repeated", parameter: name });
    else single[name] = value;
  }
  return ok({ ...single, resource });
}

// --- the redirect URI (3.1.2) -----------------------------------------------------------------------------------

export type RedirectRule = {
  /** Of the client, as it registered them. */
  registered: readonly string[];
  isPublic: boolean;
  /** Whether `http://localhost` is compared as any other URI, and not with any port as the literals. */
  localhostExact: boolean;
};

type RedirectFailure = { kind: "redirect_uri_missing" | "redirect_uri_differs" };

/** Scheme and host of a loopback URI, its port, and the rest, of which only the port may vary. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::[0-9]{1,5})?([/?].*|)$/;
const LOCALHOST = "http://localhost";

/** The URI to redirect to, as the request sent it, or the only one that is registered. */
export function matchRedirectUri(
  sent: string | undefined,
  rule: RedirectRule,
): Result<string, RedirectFailure> {
  const { registered } = rule;
  if (sent === undefined) {
    // RFC6749-3.1.2.3-1: a request may leave it out where it could mean only one.
    const [only, another] = registered;
    if (only === undefined || another !== undefined || isLoopback(only)) {
      return err({ kind: "redirect_uri_missing" });
    }
    return ok(only);
  }
  // RFC6749-3.1.2.3-2, RFC9700-2.1-1, RFC9700-4.1.3-1, MCPC-D-2: byte for byte, never by pattern or parsed.
  const matches = registered.some((one) => isSame(one, sent, rule));
  return matches ? ok(sent) : err({ kind: "redirect_uri_differs" });
}

/** MCPC-D-1, RFC8252-7.3-1, RFC9700-4.1.3-2: of a public client's loopback URI the port is whichever it listens on. */
function isSame(one: string, sent: string, { isPublic, localhostExact }: RedirectRule): boolean {
  const [registered, other] = [LOOPBACK.exec(one), LOOPBACK.exec(sent)];
  if (registered === null || other === null) return one === sent;
  if (!isPublic || (localhostExact && other[1] === LOCALHOST)) return one === sent;
  return registered[1] === other[1] && registered[2] === other[2];
}

const isLoopback = (uri: string): boolean => LOOPBACK.test(uri);

/** PAGE-D-8: whether any program on the user's computer may be behind the URI: on loopback, or by the scheme of an app. */
export const isOnComputer = (uri: string): boolean => !uri.startsWith("https:");

// --- the request (4.1.1) ----------------------------------------------------------------------------------------

/** What a provider is asked for beside the sign-in itself (OIDC-D-5). */
export type SignInWishes = {
  prompt: readonly ("login" | "select_account" | "consent")[];
  maxAgeSeconds?: number;
  acrValues: readonly string[];
  uiLocales?: string;
};

export type AuthorizationRequest = {
  challenge: string;
  jkt?: string;
  scope?: readonly string[];
  details?: readonly Detail[];
  resource: readonly string[];
  wishes: SignInWishes;
};

type AuthorizationFailure =
  | ChallengeFailure
  | KeyParameterFailure
  | TargetFailure
  | DetailsFailure
  | {
      kind:
        | "response_type_missing"
        | "response_type_unsupported"
        | "response_mode_unsupported"
        | "scope_malformed"
        | "request_object_unsupported"
        | "request_uri_unsupported"
        | "prompt_malformed"
        | "prompt_none"
        | "max_age_malformed"
        | "locales_malformed";
    };

const LOCALES = /^[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*(?: [A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*){0,15}$/;
const PROMPTS = ["login", "select_account", "consent"] as const;

/** What is asked for, once client and redirect URI are known: a failure is told to the client (RFC6749-4.1.2.1-2). */
export function readAuthorization(
  form: AuthorizationForm,
): Result<AuthorizationRequest, AuthorizationFailure> {
  if (form.request !== undefined) return err({ kind: "request_object_unsupported" });
  // RFC9126-2.2-3: what a request URI of ours refers to was read before.
  if (form.request_uri !== undefined) return err({ kind: "request_uri_unsupported" });
  // RFC6749-3.1.1-3, RFC6749-4.2-1, RFC9700-2.1.2-1: codes alone; no token ever comes from this endpoint.
  if (form.response_type === undefined) return err({ kind: "response_type_missing" });
  if (form.response_type !== "code") return err({ kind: "response_type_unsupported" });
  if (form.response_mode !== undefined && form.response_mode !== "query") {
    return err({ kind: "response_mode_unsupported" });
  }
  const challenge = parseChallenge(form.code_challenge, form.code_challenge_method);
  if (!challenge.ok) return challenge;
  const jkt = parseKeyParameter(form.dpop_jkt);
  if (!jkt.ok) return jkt;
  const resources = checkResources(form.resource);
  if (!resources.ok) return resources;
  const scope = form.scope === undefined ? undefined : parseScope(form.scope);
  if (scope?.ok === false) return scope;
  // RFC9396-3-1
  const sent = form.authorization_details;
  const details = sent === undefined ? ok(undefined) : parseDetails(sent);
  if (!details.ok) return details;
  const wishes = readWishes(form);
  if (!wishes.ok) return wishes;
  return ok(
    defined<AuthorizationRequest>({
      challenge: challenge.value,
      jkt: jkt.value,
      resource: form.resource,
      scope: scope?.value,
      details: details.value,
      wishes: wishes.value,
    }),
  );
}

/** MCPC-D-15: a state of any text up to 2 KiB is given back as it was. */
export const isState = (state: string): boolean => fitsBytes(state, STATE_BYTES_MAX);

function readWishes({
  prompt,
  max_age: maxAge,
  acr_values: acr,
  ui_locales: uiLocales,
}: AuthorizationForm): Result<SignInWishes, AuthorizationFailure> {
  const prompts = prompt?.split(" ") ?? [];
  // MCPC-D-15, PAGE-D-1: nothing is given without a click, so a request that forbids every page cannot be met.
  if (prompts.includes("none")) {
    return err({ kind: prompts.length > 1 ? "prompt_malformed" : "prompt_none" });
  }
  const known = PROMPTS.filter((one) => prompts.includes(one));
  if (maxAge !== undefined && !/^[0-9]{1,9}$/.test(maxAge)) return err({ kind: "max_age_malformed" });
  // OIDC-D-5: sent on to the provider, and looked up by us for the texts of our pages.
  if (uiLocales !== undefined && !LOCALES.test(uiLocales)) return err({ kind: "locales_malformed" });
  const acrValues = acr === undefined ? ok([]) : parseScope(acr);
  return ok(
    defined<SignInWishes>({
      prompt: known,
      maxAgeSeconds: maxAge === undefined ? undefined : Number(maxAge),
      acrValues: acrValues.ok ? acrValues.value : [],
      uiLocales,
    }),
  );
}
