/** What ends by itself among the things that the configuration brings along: certificates, authorities, secrets. */
import { X509Certificate } from "node:crypto";
import type { Settings } from "../settings/settings.ts";
import type { Config } from "./config.ts";
import { certificatesIn } from "./file-contents.ts";

/** `where` is a path in the configuration; of several certificates there, the one counts that ends first. */
export type Dated = {
  where: string;
  kind: "certificate" | "authority" | "secret";
  beginSeconds?: number;
  endSeconds: number;
};

/** Every certificate of every listener, authority and client, and the secrets that end. */
export function datedOf({ fixed, settings }: Pick<Config, "fixed" | "settings">): readonly Dated[] {
  const listeners = Object.entries({ listen: fixed.listen, mtls: fixed.mtls, proxy: fixed.proxy });
  const shown = listeners.map(([name, listener]) =>
    dated(`${name}.tls.cert`, "certificate", certificatesIn(listener?.cert ?? "")),
  );
  const anchors = (fixed.proxy?.ca ?? []).map((der) => new X509Certificate(der));
  const authorities = reachesOf(settings, fixed.audit).map(([where, place]) =>
    dated(where, "authority", "ca" in place ? certificatesIn(String(place.ca)) : []),
  );
  return [...shown, dated("proxy.ca", "authority", anchors), ...authorities, secretsOf(settings)].flat();
}

/** There is no date where there is no certificate. */
function dated(
  where: string,
  kind: Dated["kind"],
  certificates: readonly X509Certificate[],
): readonly Dated[] {
  if (certificates.length === 0) return [];
  const ends = certificates.map(({ validToDate }) => Math.floor(validToDate.getTime() / 1000));
  const begins = certificates.map(({ validFromDate }) => Math.floor(validFromDate.getTime() / 1000));
  return [{ where, kind, beginSeconds: Math.max(...begins), endSeconds: Math.min(...ends) }];
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

/** Only secrets that end are listed, because most do not. */
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
