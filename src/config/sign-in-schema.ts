/** The schema of the `signIn` and `authorize` sections. */
import * as v from "valibot";
import {
  CONSENT_DAYS,
  CONSENT_DAYS_MAX,
  NAME_CHARS_MAX,
  REFRESH_DAYS,
  REFRESH_DAYS_MAX,
  REFRESH_HOURS,
  REFRESH_HOURS_MAX,
  REFRESH_IDLE_DAYS,
  REFRESH_RETRY_SECONDS,
  REFRESH_RETRY_SECONDS_MAX,
} from "../limits/people.ts";
import type { SchemeColours } from "../settings/colours.ts";
import { ACCENT, CONTRAST_MIN, isReadable } from "../settings/colours.ts";
import { parseFetchUrl } from "../spec/rfc3986.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import { ASSERTION_ALGORITHMS } from "../spec/rfc8725.ts";
import { reach, seconds, secret, text } from "./values.ts";

const scope = v.pipe(v.string(), v.check(isScopeToken, "is not a scope token"));
/** A name that stands in our callback URL, which is registered at the provider. */
const name = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9-]{0,31}$/, "is not the name of a provider: 1 to 32 characters of a-z, 0-9 and -"),
);

const remoteUrl = v.pipe(
  v.string(),
  v.check((one) => parseFetchUrl(one).ok, "is not an https URL in canonical form"),
);

export const ProviderFile = v.strictObject({
  /** One of `trustedIssuers`. */
  issuer: text,
  /** What users are shown where there are several providers. */
  title: v.optional(text),
  /** Of this server at the provider. */
  clientId: text,
  method: v.optional(v.picklist(["private_key_jwt", "client_secret_basic", "client_secret_post"])),
  clientSecret: v.optional(secret),
  /** The audience of this server's assertions for private_key_jwt. */
  assertionAudience: v.optional(v.picklist(["issuer", "token_endpoint"]), "issuer"),
  /** For assertions to the token endpoint: its URL, which the provider's metadata cannot change. */
  tokenEndpoint: v.optional(remoteUrl),
  idTokenAlg: v.optional(v.picklist(ASSERTION_ALGORITHMS), "RS256"),
  /** Beside `openid`; for the name that is shown, and nothing else. */
  scopes: v.optional(v.array(scope), []),
  maxAgeSeconds: v.optional(seconds),
  /** The authentication context classes of which a sign-in must have one. */
  requiredAcr: v.optional(v.array(scope), []),
  ...reach,
});

/** Present: users sign in here, and clients may ask them for access. */
export const SignInFile = v.strictObject({
  providers: v.pipe(
    v.record(name, ProviderFile),
    v.check((providers) => Object.keys(providers).length > 0, "names no provider"),
  ),
});

const whole = (least: number, most: number, otherwise: number) =>
  v.optional(v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most)), otherwise);

export const AuthorizeFile = v.strictObject({
  /** How redirect URIs of `http://localhost` are compared: with any port, exactly, or not accepted at all. */
  localhost: v.optional(v.picklist(["any-port", "exact", "off"]), "any-port"),
  /** The redirect URIs with a scheme of an app that are accepted, each exactly. */
  privateUse: v.optional(v.array(text), []),
  /** How long a consent lasts that a user gave on our page. */
  consentDays: whole(1, CONSENT_DAYS_MAX, CONSENT_DAYS),
  /** How long refresh tokens may be used, from the click of their user. */
  refresh: v.optional(
    v.strictObject({
      /** Where the user lets the client go on without them (`offline_access`): in all, and without use. */
      days: whole(1, REFRESH_DAYS_MAX, REFRESH_DAYS),
      idleDays: whole(1, REFRESH_DAYS_MAX, REFRESH_IDLE_DAYS),
      /** Anywhere else. */
      hours: whole(1, REFRESH_HOURS_MAX, REFRESH_HOURS),
      /** How long after a rotation the token before it gives the same successor. */
      retrySeconds: whole(0, REFRESH_RETRY_SECONDS_MAX, REFRESH_RETRY_SECONDS),
    }),
    {},
  ),
});

const colour = (scheme: keyof SchemeColours) =>
  v.pipe(
    v.string(),
    v.regex(/^#[0-9a-f]{6}$/i, "is not a colour like #1f4fbf"),
    // WCAG-1.4.3-1
    v.check(
      (one) => !/^#[0-9a-f]{6}$/i.test(one) || isReadable(one, scheme),
      `cannot be read on the pages of the ${scheme} scheme: the contrast to their ground must be ${CONTRAST_MIN} to 1 at least`,
    ),
  );

/** In whose name and colours users are shown pages. */
export const PagesFile = v.strictObject({
  /** Shown at the top of each page; without it, the host of the issuer. */
  operator: v.optional(
    v.pipe(text, v.maxLength(NAME_CHARS_MAX, `is longer than ${NAME_CHARS_MAX} characters`)),
  ),
  /** Of links and buttons. */
  colours: v.optional(
    v.strictObject({
      light: v.optional(colour("light"), ACCENT.light),
      dark: v.optional(colour("dark"), ACCENT.dark),
    }),
    {},
  ),
});
