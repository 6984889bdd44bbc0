/** What ends by itself among the things that the configuration brings along: certificates, authorities, secrets. */
import { X509Certificate } from "node:crypto";
import type { Settings } from "../settings/settings.ts";
import type { Config } from "./config.ts";

/** `where` is a path in the configuration; of several certificates there, the one counts that ends first. */
export type Dated = {
  where: string;
  kind: "certificate" | "authority" | "secret";
  beginSeconds?: number;
  endSeconds: number;
};

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Every certificate of every listener, authority and client, and the secrets that end. */
export function datedOf({ fixed, settings }: Pick<Config, "fixed" | "settings">): readonly Dated[] {
  const listeners = Object.entries({ listen: fixed.listen, mtls: fixed.mtls, proxy: fixed.proxy });
  const shown = listeners.flatMap(([name, listener]) =>
    listener === undefined ? [] : [dated(`${name}.tls.cert`, "certificate", fromPem(listener.cert))],
  );
  const anchors = (fixed.proxy?.anchors ?? []).map((der) => new X509Certificate(der));
  const proxy = anchors.length === 0 ? [] : [dated("proxy.ca", "authority", anchors)];
  const authorities = reachesOf(settings, fixed.audit).flatMap(([where, place]) =>
    "ca" in place ? [dated(where, "authority", fromPem(String(place.ca)))] : [],
  );
  return [...shown, ...proxy, ...authorities, ...secretsOf(settings)];
}

const fromPem = (pem: string): readonly X509Certificate[] =>
  (pem.match(PEM) ?? []).map((block) => new X509Certificate(block));

function dated(where: string, kind: Dated["kind"], certificates: readonly X509Certificate[]): Dated {
  const ends = certificates.map(({ validToDate }) => Math.floor(validToDate.getTime() / 1000));
  const begins = certificates.map(({ validFromDate }) => Math.floor(validFromDate.getTime() / 1000));
  return { where, kind, beginSeconds: Math.max(...begins), endSeconds: Math.min(...ends) };
}

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

/** Only those that end: most do not. */
const secretsOf = ({ clients }: Settings): readonly Dated[] =>
  [...clients].flatMap(([id, { auth }]) =>
    "secrets" in auth
      ? auth.secrets.flatMap(({ expiresAtSeconds: endSeconds }, index): Dated[] =>
          endSeconds === undefined
            ? []
            : [{ where: `clients.${id}.secrets.${index}`, kind: "secret", endSeconds }],
        )
      : [],
  );
