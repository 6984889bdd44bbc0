/** The dates of what the configuration brings along: certificates, authorities, secrets. */
import { X509Certificate } from "node:crypto";
import type { Config } from "../../config/config.ts";
import { END_WARNING_DAYS } from "../../limits.ts";
import type { Settings } from "../../settings/settings.ts";
import type { Finding } from "./finding.ts";

const DAY_SECONDS = 86_400;

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

type Dated = { where: string; what: string; remedy: string; certificates: readonly X509Certificate[] };

/** Every certificate of every listener, authority and client, each with its dates. */
export function datesOf({ fixed, settings }: Config, nowSeconds: number): readonly Finding[] {
  const renew = "renew it; SIGHUP takes it into use";
  const listeners = Object.entries({ listen: fixed.listen, mtls: fixed.mtls, proxy: fixed.proxy }).flatMap(
    ([name, listener]): Dated[] =>
      listener === undefined
        ? []
        : [
            {
              where: `${name}.tls.cert`,
              what: "the certificate",
              remedy: renew,
              certificates: fromPem(listener.cert),
            },
          ],
  );
  const anchors = (fixed.proxy?.anchors ?? []).map((der) => new X509Certificate(der));
  const proxy = anchors.length === 0 ? [] : [authority("proxy.ca", anchors)];
  const authorities = reachesOf(settings, fixed.audit).flatMap(([where, place]) =>
    "ca" in place ? [authority(where, fromPem(String(place.ca)))] : [],
  );
  return [
    ...[...listeners, ...proxy, ...authorities].map((dated) => judge(dated, nowSeconds)),
    ...secretsOf(settings, nowSeconds),
  ];
}

const authority = (where: string, certificates: readonly X509Certificate[]): Dated => ({
  where,
  what: "the authority",
  remedy: "replace the file by that of the next one; SIGHUP takes it into use",
  certificates,
});

const fromPem = (pem: string): readonly X509Certificate[] =>
  (pem.match(PEM) ?? []).map((block) => new X509Certificate(block));

/** Everything that may have an authority of its own, by its path. */
function reachesOf(
  { trustDomains, trustedIssuers, clients, clientOrigins, signIn }: Settings,
  { witness }: Config["fixed"]["audit"],
): readonly (readonly [where: string, place: object])[] {
  return [
    ...[...trustDomains].map(([name, { bundle }]) => [`trustDomains.${name}.bundle.ca`, bundle] as const),
    ...[...trustedIssuers].map(([name, { keys }]) => [`trustedIssuers.${name}.keys.ca`, keys] as const),
    ...[...clients].flatMap(([id, { auth }]) =>
      "jwksUri" in auth ? [[`clients.${id}.jwksUri.ca`, auth.jwksUri] as const] : [],
    ),
    ...[...clientOrigins].map(([origin, reach]) => [`clientOrigins.${origin}.ca`, reach] as const),
    ...[...(signIn?.providers ?? [])].map(([name, one]) => [`signIn.providers.${name}.ca`, one] as const),
    ...(typeof witness === "object" && "sink" in witness
      ? [["audit.witness.ca", witness.sink] as const]
      : []),
  ];
}

/** Of several, the one that ends first decides. */
function judge({ where, what, remedy, certificates }: Dated, nowSeconds: number): Finding {
  const ends = certificates.map(({ validToDate }) => Math.floor(validToDate.getTime() / 1000));
  const begins = certificates.map(({ validFromDate }) => Math.floor(validFromDate.getTime() / 1000));
  const [begin, end] = [Math.max(...begins), Math.min(...ends)];
  if (begin > nowSeconds) {
    const says = `${what} is valid only from ${dateOf(begin)}: compare the clock of this machine, or wait`;
    return { level: "error", where, says };
  }
  return judgeEnd({ where, what, remedy, end, nowSeconds });
}

type Ending = { where: string; what: string; remedy: string; end: number; nowSeconds: number };

function judgeEnd({ where, what, remedy, end, nowSeconds }: Ending): Finding {
  if (end <= nowSeconds) return { level: "error", where, says: `${what} ended on ${dateOf(end)}: ${remedy}` };
  if (end <= nowSeconds + END_WARNING_DAYS * DAY_SECONDS) {
    const days = Math.floor((end - nowSeconds) / DAY_SECONDS);
    return { level: "warning", where, says: `${what} ends on ${dateOf(end)}, in ${days} days: ${remedy}` };
  }
  return { level: "ok", where, says: `${what} is valid until ${dateOf(end)}` };
}

/** Only those that end: most do not. */
function secretsOf({ clients }: Settings, nowSeconds: number): readonly Finding[] {
  return [...clients].flatMap(([id, { auth }]) => {
    if (!("secrets" in auth)) return [];
    return auth.secrets.flatMap(({ expiresAtSeconds: end }, index) => {
      const where = `clients.${id}.secrets.${index}`;
      const remedy = "give the client another one, and add it here";
      return end === undefined ? [] : [judgeEnd({ where, what: "the secret", remedy, end, nowSeconds })];
    });
  });
}

const dateOf = (seconds: number): string => new Date(1000 * seconds).toISOString();
