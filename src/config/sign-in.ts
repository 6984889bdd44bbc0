/** The `signIn` and `authorize` sections: the providers at which users sign in, and what apps of users may ask for. */
import type * as v from "valibot";
import { defined } from "../result.ts";
import type { Provider, ProviderAuth, RefreshSettings, SignInSettings } from "../settings/settings.ts";
import { checkPrivateUse, type RedirectRules } from "../spec/rfc8252.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";
import type { ProviderFile } from "./sign-in-schema.ts";

/** Reads the section; undefined if there is none, and then nothing of this is served. */
export function readSignIn(config: ConfigFile, reader: Reader): SignInSettings | undefined {
  const { signIn, authorize, trustDomains, trustedIssuers, mtls, proxy } = config;
  if (signIn === undefined) return undefined;
  if (mtls === undefined && proxy === undefined && needsCertificates(config)) {
    reader.problem(
      "mtls",
      "is missing: with signIn the main listener asks no browser for a certificate, so clients with certificates need this listener",
    );
  } else if (mtls === undefined && proxy === undefined && Object.keys(trustDomains).length > 0) {
    reader.warnings.push(
      "mtls: is missing: with signIn the main listener asks no browser for a certificate, so no workload of trustDomains can prove itself by an X.509-SVID: set mtls, unless all of them use JWT-SVIDs",
    );
  }
  const providers = new Map<string, Provider>();
  for (const [name, from] of Object.entries(signIn.providers)) {
    const path = `signIn.providers.${name}`;
    const issuer = trustedIssuers[from.issuer];
    if (issuer === undefined) {
      reader.problem(
        `${path}.issuer`,
        "is not in trustedIssuers, so it is not known what its users are called here",
      );
    }
    const { ca, privateNetworks, method, clientSecret, assertionAudience, tokenEndpoint, ...asWritten } =
      from;
    const { url, ...within } = reader.readRemote(path, { url: from.issuer, ca, privateNetworks });
    const proof = { issuer: url, method, clientSecret, assertionAudience, tokenEndpoint };
    const auth = readAuth(path, proof, reader);
    // STU-D-5
    if (
      auth?.method === "private_key_jwt" &&
      auth.tokenEndpoint !== undefined &&
      from.recheck === "introspection"
    ) {
      reader.warnings.push(
        `${path}.assertionAudience: is "token-endpoint", and with recheck "introspection" the assertion also goes to another endpoint than it names: set "issuer", if the provider takes it`,
      );
    }
    // A disabled issuer is no way to sign in; it may be enabled again at any time.
    if (auth === undefined || issuer === undefined || issuer.disabled) continue;
    const title = from.title ?? new URL(from.issuer).host;
    providers.set(name, defined<Provider>({ ...asWritten, ...within, name, title, auth }));
  }
  const consentSeconds = authorize.consentDays * DAY_SECONDS;
  const { recheckSeconds, recheckGraceSeconds, recheckUnaskedSeconds, goneEndsConsents } = signIn;
  if (recheckGraceSeconds < recheckSeconds) {
    reader.warnings.push(
      `signIn.recheckGraceSeconds: is less than recheckSeconds, so that users have to sign in again once their provider has not answered for ${recheckGraceSeconds} s: raise it, unless that is intended`,
    );
  }
  const recheck = {
    seconds: recheckSeconds,
    graceSeconds: recheckGraceSeconds,
    unaskedSeconds: recheckUnaskedSeconds,
    endsConsents: goneEndsConsents,
  };
  return { providers, consentSeconds, recheck, refresh: readRefreshTimes(authorize.refresh, consentSeconds) };
}

const DAY_SECONDS = 24 * 3600;

/** What a user is told of refresh tokens has to be true, so they last no longer than the consent. */
function readRefreshTimes(
  { days, idleDays, hours, retrySeconds }: ConfigFile["authorize"]["refresh"],
  consentSeconds: number,
): RefreshSettings {
  const seconds = Math.min(days * DAY_SECONDS, consentSeconds);
  return {
    seconds,
    idleSeconds: Math.min(idleDays * DAY_SECONDS, seconds),
    briefSeconds: Math.min(hours * 3600, seconds),
    retryMs: retrySeconds * 1000,
  };
}

/** MCPC-D-3: the redirect URIs of apps, each a complete one of a private-use scheme. */
export function readRedirects({ authorize }: ConfigFile, reader: Reader): RedirectRules {
  const { localhost, privateUse } = authorize;
  for (const [index, uri] of privateUse.entries()) {
    const path = `authorize.privateUse.${index}`;
    const checked = checkPrivateUse(uri);
    if (!checked.ok) {
      reader.problem(path, "is not a redirect URI with an app's own scheme and a path");
    } else if (checked.value.shared) {
      reader.warnings.push(
        `${path}: ${uri} has a scheme without a period, which other apps may use as well: remove it if no client needs it`,
      );
    }
  }
  return { localhost, privateUse };
}

type From = Pick<
  v.InferOutput<typeof ProviderFile>,
  "issuer" | "method" | "clientSecret" | "assertionAudience" | "tokenEndpoint"
>;

function readAuth(path: string, from: From, reader: Reader): ProviderAuth | undefined {
  const { method, clientSecret, assertionAudience, tokenEndpoint } = from;
  const by = method ?? (clientSecret === undefined ? "private_key_jwt" : "client_secret_basic");
  const toEndpoint = by === "private_key_jwt" && assertionAudience === "token-endpoint";
  // OIDC-9-2: an endpoint that metadata name may be another party's, which could use the assertion there.
  if (toEndpoint !== (tokenEndpoint !== undefined)) {
    const what = toEndpoint
      ? "is missing: an assertion to the token endpoint needs its URL here"
      : 'is for private_key_jwt with assertionAudience "token-endpoint" alone';
    return reader.problem(`${path}.tokenEndpoint`, what);
  }
  if (by === "private_key_jwt") {
    return clientSecret === undefined
      ? defined<ProviderAuth>({ method: by, audience: tokenEndpoint ?? from.issuer, tokenEndpoint })
      : reader.problem(`${path}.clientSecret`, "is not for the method private_key_jwt");
  }
  if (clientSecret === undefined)
    return reader.problem(`${path}.clientSecret`, `is missing for the method ${by}`);
  const value = reader.readSecret(`${path}.clientSecret`, clientSecret);
  // The reader has reported what is wrong; a blind reader reads none.
  return { method: by, secret: value ?? "" };
}

/** Whether a client of the configuration proves itself by a certificate. */
const needsCertificates = ({ clients }: ConfigFile): boolean =>
  Object.values(clients).some(({ method }) =>
    ["spiffe_x509", "tls_client_auth", "self_signed_tls_client_auth"].includes(method),
  );
