/** The schema of the `signIn` and `authorize` sections. */
import * as v from "valibot";
import { AGENT_TITLE_CHARS_MAX } from "../limits/input.ts";
import {
  CONSENT_DAYS,
  CONSENT_DAYS_MAX,
  NAME_CHARS_MAX,
  RECHECK_AGAIN_SECONDS,
  RECHECK_GRACE_SECONDS,
  RECHECK_GRACE_SECONDS_MAX,
  RECHECK_GRACE_SECONDS_MIN,
  RECHECK_SECONDS,
  RECHECK_SECONDS_MAX,
  RECHECK_UNASKED_SECONDS,
  REFRESH_DAYS,
  REFRESH_DAYS_MAX,
  REFRESH_HOURS,
  REFRESH_HOURS_MAX,
  REFRESH_IDLE_DAYS,
  REFRESH_RETRY_SECONDS,
  REFRESH_RETRY_SECONDS_MAX,
} from "../limits/people.ts";
import { shownText, worded } from "../policy/worded.ts";
import { flag, list, maybe, setting, whole } from "../setting.ts";
import { ACCENT, CONTRAST_MIN, isReadable, type SchemeColours } from "../settings/colours.ts";
import { zoneNamed } from "../settings/time-zone.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import { ASSERTION_ALGORITHMS } from "../spec/rfc8725.ts";
import { httpsUrl, picture, reach, seconds, secret, text } from "./values.ts";

const scope = v.pipe(v.string(), v.check(isScopeToken, "is not a scope token"));
/** A name that stands in our callback URL, which is registered at the provider. */
const name = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9-]{0,31}$/, "is not the name of a provider: 1 to 32 characters of a-z, 0-9 and -"),
);

export const ProviderFile = v.strictObject({
  issuer: setting(text, "One of `trustedIssuers`."),
  title: maybe(
    worded(AGENT_TITLE_CHARS_MAX),
    "What users are shown where there are several, in one text or one by language; by default its host.",
  ),
  clientId: setting(text, "The client_id of this server at the provider."),
  method: maybe(
    v.picklist(["private_key_jwt", "client_secret_basic", "client_secret_post"]),
    "How this server authenticates there: private_key_jwt (the default; its keys are at {issuer}/rp/jwks/NAME), or by a secret.",
  ),
  clientSecret: maybe(secret, "The secret of this server at the provider, for the two methods with one."),
  assertionAudience: setting(
    v.optional(v.picklist(["issuer", "token-endpoint"]), "issuer"),
    'The audience of this server\'s assertions for private_key_jwt: "issuer" (the default, as FAPI and RFC 10070 want it) or "token-endpoint" (as OpenID Connect Core 9 has it).',
  ),
  tokenEndpoint: maybe(
    httpsUrl,
    'The token endpoint of the provider, which "token-endpoint" requires: the provider\'s metadata could name that of another party.',
  ),
  idTokenAlg: setting(
    v.optional(v.picklist(ASSERTION_ALGORITHMS), "RS256"),
    "The one signature algorithm of its ID tokens; RS256 by default.",
  ),
  scopes: list(
    scope,
    "Scopes to ask for beside openid: for the user's name, and offline_access where the provider gives a refresh token only then.",
  ),
  recheck: setting(
    v.optional(v.picklist(["refresh", "introspection", "visit"]), "refresh"),
    'How it is asked whether it still stands by a user: by the refresh token of the sign-in, which "refresh" (the default) uses and "introspection" shows to its introspection endpoint; "visit" asks by the next sign-in alone.',
  ),
  signInSecondsMax: maybe(seconds, "How many seconds ago a user may have signed in there, at most."),
  acr: list(scope, "The authentication context classes of which a sign-in must have one."),
  ...reach,
});

/** If the section is present, users sign in here, and clients may ask them for access. */
export const SignInFile = v.strictObject({
  providers: setting(
    v.pipe(
      v.record(name, ProviderFile),
      v.check((providers) => Object.keys(providers).length > 0, "names no provider"),
    ),
    "The providers, each by a name that is part of its redirect URI {issuer}/callback/NAME.",
  ),
  recheckSeconds: setting(
    v.optional(whole(RECHECK_AGAIN_SECONDS, RECHECK_SECONDS_MAX), RECHECK_SECONDS),
    "After how many seconds without a word of the user's provider a refresh, or the code of a click, asks it first; 900 by default.",
  ),
  recheckGraceSeconds: setting(
    v.optional(whole(RECHECK_GRACE_SECONDS_MIN, RECHECK_GRACE_SECONDS_MAX), RECHECK_GRACE_SECONDS),
    "For how many seconds more its last word serves while the provider does not answer, counted from that word and not from the first question; 3600 by default.",
  ),
  recheckUnaskedSeconds: setting(
    v.optional(whole(RECHECK_AGAIN_SECONDS, REFRESH_DAYS_MAX * 24 * 3600), RECHECK_UNASKED_SECONDS),
    "For how many seconds after their user's last sign-in refresh tokens serve where the provider gave no refresh token by which it could be asked; a day by default. Those with offline_access too, so a client that works alone for days needs a provider that gives refresh tokens, or a longer time here.",
  ),
  goneEndsConsents: flag(
    "Whether consents are withdrawn too when the provider does not know a user any more",
  ),
});

const RefreshFile = v.strictObject({
  days: setting(
    v.optional(whole(1, REFRESH_DAYS_MAX), REFRESH_DAYS),
    "How many days a client may go on without its user where they allow that (offline_access); 30 by default, 90 at most.",
  ),
  idleDays: setting(
    v.optional(whole(1, REFRESH_DAYS_MAX), REFRESH_IDLE_DAYS),
    "After how many days without use that ends; 7 by default.",
  ),
  hours: setting(
    v.optional(whole(1, REFRESH_HOURS_MAX), REFRESH_HOURS),
    "For how many hours refresh tokens may be used anywhere else; 12 by default, 24 at most.",
  ),
  retrySeconds: setting(
    v.optional(whole(0, REFRESH_RETRY_SECONDS_MAX), REFRESH_RETRY_SECONDS),
    "How many seconds after a rotation the token before it gives the same successor to the same source; 10 by default, 60 at most. For as long a thief at that source may follow the client unseen.",
  ),
});

export const AuthorizeFile = v.strictObject({
  localhost: setting(
    v.optional(v.picklist(["any-port", "exact", "off"]), "any-port"),
    'How redirect URIs of http://localhost are compared, in registrations and metadata documents too: "any-port" (the default), "exact", or "off".',
  ),
  privateUse: list(
    text,
    "The accepted redirect URIs with a scheme of an app, each in full, such as cursor://anysphere.cursor-mcp/oauth/callback. The start warns of a scheme without a period, which other apps may use as well.",
  ),
  consentDays: setting(
    v.optional(whole(1, CONSENT_DAYS_MAX), CONSENT_DAYS),
    "How many days a consent lasts that a user gave on our page; 90 by default.",
  ),
  refresh: setting(
    v.optional(RefreshFile, {}),
    "How long refresh tokens may be used, from the click of their user, and never longer than the consent.",
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

const ColoursFile = v.strictObject({
  light: setting(
    v.optional(colour("light"), ACCENT.light),
    "In the light scheme, such as #1f4fbf; with a contrast of 4.5 to 1 at least.",
  ),
  dark: setting(
    v.optional(colour("dark"), ACCENT.dark),
    "In the dark scheme, such as #9dbdff; with a contrast of 4.5 to 1 at least.",
  ),
});

/** The name, logo and colours in which users are shown pages. */
export const PagesFile = v.strictObject({
  operator: maybe(
    shownText(NAME_CHARS_MAX),
    "The name at the top of every page; by default the host of the issuer.",
  ),
  logo: maybe(
    picture,
    "A picture with that name, shown in place of it on every page: a PNG file, which this server serves itself.",
  ),
  colours: setting(v.optional(ColoursFile, {}), "The colour of links and buttons in each scheme."),
  timeZone: maybe(
    v.pipe(
      text,
      v.check((name) => zoneNamed(name) !== undefined, "is not a time zone like Europe/Berlin"),
    ),
    "The time zone in which users read times, such as Europe/Berlin, where the ID token of their provider has no zoneinfo; by default UTC alone.",
  ),
});
