/** The kinds of values that several sections of the configuration file have. */
import * as v from "valibot";
import { notCanonical } from "../policy/nearest.ts";
import { list, maybe, setting, whole, wholeFrom } from "../setting.ts";
import { isNetwork, isNeverReached } from "../settings/outbound.ts";
import { parseFetchUrl } from "../spec/rfc3986.ts";
import { parsePattern, parseSpiffeId } from "../spec/spiffe/id.ts";

export const text = v.pipe(v.string(), v.nonEmpty("is empty"));
const fileOf = (what: string) =>
  v.strictObject({ file: setting(text, `${what}, relative to the folder of this configuration.`) });
export const file = fileOf("The name of a file");
export const keyFile = fileOf("A private key in PEM");
export const certificates = fileOf("Certificates in PEM");
export const picture = fileOf("A PNG picture of at most 32 KiB");
export const checkpoints = fileOf("A file to which checkpoints are appended");
export const env = v.strictObject({
  env: setting(text, "The name of an environment variable that has the value."),
});
type Form = v.GenericSchema & { readonly entries?: object };

const firstOf = ({ entries = {} }: Form): string | undefined => Object.keys(entries)[0];

/** A value of one of several forms; a member that does not fit is named where the form is known that is meant. */
export function oneForm<const F extends readonly Form[]>(forms: F, otherwise: string) {
  const settingNames = new Set(forms.flatMap(({ entries = {} }) => Object.keys(entries)));
  return v.union(forms, ({ input }) => {
    const members = Object.entries(typeof input === "object" && !Array.isArray(input) ? { ...input } : {});
    const unknown = members.flatMap(([name]) => (settingNames.has(name) ? [] : [JSON.stringify(name)]));
    const rest = Object.fromEntries(members.filter(([name]) => settingNames.has(name)));
    const fits = unknown.length > 0 && forms.some((form) => v.is(form, rest));
    if (fits) return `has members that are no known settings: ${unknown.join(", ")}`;
    // The member by which a form begins is in no other one, so that it tells which form is meant.
    const [form, ...others] = forms.filter((one) => (firstOf(one) ?? "") in rest);
    if (form === undefined || others.length > 0) return otherwise;
    const beside = Object.keys(rest).find((name) => !(name in (form.entries ?? {})));
    return beside === undefined
      ? otherwise
      : `has "${beside}", which is no setting beside "${firstOf(form)}": remove it`;
  });
}

/** A secret comes from a file or the environment; inline in the development profile only. */
export const secret = v.union([file, env, text], 'is neither { "file": … } nor { "env": … }');
export const httpsUrl = v.pipe(
  v.string(),
  v.check((url) => parseFetchUrl(url).ok, notCanonical),
);
export const workloadId = v.pipe(
  v.string(),
  v.check((id) => parsePattern(id).ok && parseSpiffeId(id).ok, "is not the SPIFFE ID of a workload"),
);
export const workloadPattern = v.pipe(
  v.string(),
  v.check((one) => parsePattern(one).ok, "is neither a SPIFFE ID nor a prefix of one that ends in /*"),
);
export const network = v.pipe(
  v.string(),
  v.check(isNetwork, "is not a network in CIDR form"),
  v.check(
    (one) => !isNetwork(one) || !isNeverReached(one),
    "is never reached, whatever is permitted: link-local addresses, those of cloud metadata services and the like",
  ),
);
export const reach = {
  ca: maybe(
    certificates,
    "The authority that issued the certificate of that server, if it is a private one.",
  ),
  privateNetworks: list(
    network,
    "Private networks that the URL may lead to, in CIDR form, such as 10.0.0.0/8; none by default.",
  ),
};
export const remote = v.strictObject({
  url: setting(
    httpsUrl,
    "An https URL. It reaches public addresses, and private ones only as `privateNetworks` permits.",
  ),
  ...reach,
});
export const isoTime = v.pipe(v.string(), v.isoTimestamp("is not a time like 2027-01-31T00:00:00Z"));
export const port = whole(0, 65535);
export const seconds = wholeFrom(1);

/**
 * The text is as a browser writes the origin of a page: https, or http on this computer; origins are compared byte for
 * byte.
 */
export const pageOrigin = v.pipe(
  v.string(),
  v.check(
    (url) =>
      /^(?:https:\/\/|http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::|$))/.test(url) &&
      URL.canParse(url) &&
      new URL(url).origin === url,
    "is not the origin of a page: https, or http on localhost, 127.0.0.1 or [::1], without a path and in lower case",
  ),
);

export const originUrl = v.pipe(
  httpsUrl,
  v.check((url) => URL.canParse(url) && new URL(url).origin === url, "is not an https origin without a path"),
);

export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$/.test(host);
}
