/** The names of this server: the base URLs of its endpoints, and what assertions may be addressed to. */
import type { Settings } from "./settings.ts";

/** RFC8705-5-1: where clients with certificates find the endpoints, at the same path as others; undefined without that listener. */
export const certificateBase = ({
  issuer,
  mtlsOrigin,
}: Pick<Settings, "issuer" | "mtlsOrigin">): string | undefined =>
  mtlsOrigin && mtlsOrigin + new URL(issuer).pathname.replace(/\/$/, "");

/**
 * What `aud` of an assertion may be; it holds exactly one of these and nothing else. RFC8705-5-2: a client that uses the
 * token endpoint of the other listener names that one.
 */
export function assertionAudiences(
  settings: Pick<Settings, "issuer" | "mtlsOrigin" | "assertionAudience">,
): readonly string[] {
  const { issuer, assertionAudience } = settings;
  if (assertionAudience === "issuer") return [issuer];
  const bases = [issuer, certificateBase(settings)].filter((base) => base !== undefined);
  return [issuer, ...bases.map((base) => `${base}/token`)];
}
