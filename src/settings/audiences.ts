/** The names of this server: the base URLs of its endpoints, and what assertions may be addressed to. */
import type { Settings } from "./settings.ts";

/** RFC8705-5-1: where clients with certificates find the endpoints, at the same path as others; undefined without that listener. */
export const certificateBase = ({
  issuer,
  mtlsOrigin,
}: Pick<Settings, "issuer" | "mtlsOrigin">): string | undefined =>
  mtlsOrigin && mtlsOrigin + new URL(issuer).pathname.replace(/\/$/, "");

/** The path of the token endpoint, below that of the issuer. */
export const TOKEN_PATH = "/token";

/**
 * What `aud` of an assertion may be; it holds exactly one of these and nothing else. RFC8705-5-2: a client that uses the
 * token endpoint of the other listener names that one. `endpoint`: the path at which the assertion came;
 * `clientId`: the client that it names.
 */
export function assertionAudiences(
  settings: Pick<Settings, "issuer" | "mtlsOrigin" | "assertionAudience" | "clientDocuments">,
  endpoint: string,
  clientId?: string,
): readonly string[] {
  const { issuer, assertionAudience, clientDocuments } = settings;
  // STU-D-1: at another endpoint, the URL of the token endpoint shows that the assertion was made for another request.
  if (assertionAudience === "issuer" || endpoint !== TOKEN_PATH) return [issuer];
  // STU-D-2: decided by the name, so that no document is fetched for an assertion that is refused.
  if (clientDocuments?.assertionAudience !== undefined && clientId?.startsWith("https://")) return [issuer];
  const bases = [issuer, certificateBase(settings)].filter((base) => base !== undefined);
  return [issuer, ...bases.map((base) => `${base}${TOKEN_PATH}`)];
}
