/**
 * RFC 8707, Resource Indicators for OAuth 2.0: https://www.rfc-editor.org/rfc/rfc8707.html
 * Covers 2 the resource parameter, 2.2 its meaning at the token endpoint, together with `audience` of RFC 8693 2.1.
 * Elsewhere: 2 http/errors.ts, spec/rfc6749.ts; 2.2 people/flows/refresh.ts.
 */

import { STRING_BYTES_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { lowerCase } from "./rfc5280-names.ts";
import { fitsBytes } from "./rfc8259.ts";

export type TargetFailure =
  | { kind: "resource_malformed" }
  | { kind: "target_malformed" }
  | { kind: "targets_several" };

const ABSOLUTE_URI = /^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$/;

const fits = (name: string): boolean => fitsBytes(name, STRING_BYTES_MAX);

/**
 * RFC8707-2-2, RFC8707-2-3, RFC8693-2.1-6, RFC8693-2.1-8: a resource is an absolute URI without fragment and without
 * user name.
 */
export function checkResources(resource: readonly string[]): Result<undefined, TargetFailure> {
  const malformed = (value: string) => !ABSOLUTE_URI.test(value) || /^[^:]*:\/\/[^/?]*@/.test(value);
  if (resource.some(malformed)) return err({ kind: "resource_malformed" });
  return resource.every(fits) ? ok(undefined) : err({ kind: "target_malformed" });
}

const ORIGIN = /^https?:\/\/[^/?]+/i;

/**
 * RFC8707-D-1, MCP-O.8.1-1: the configured name that a resource stands for. Scheme and host are the same in any case
 * (RFC 3986 6.2.2.1), and an origin with and without a final slash (6.2.3), which clients that parse it write.
 */
function configuredName(resource: string, targets: ReadonlyMap<string, unknown>): string {
  if (targets.has(resource)) return resource;
  const path = resource.replace(ORIGIN, "");
  const origin = lowerCase(resource.slice(0, resource.length - path.length));
  const names = path === "" || path === "/" ? [origin, `${origin}/`] : [origin + path];
  return names.find((name) => targets.has(name)) ?? resource;
}

/** The one target name that `resource` and `audience` request together; undefined when neither was sent. */
export function requestedTarget(
  resource: readonly string[],
  audience: readonly string[],
  registry: { targets: ReadonlyMap<string, unknown> },
): Result<string | undefined, TargetFailure> {
  const resources = checkResources(resource);
  if (!resources.ok) return resources;
  const meant = resource.map((one) => configuredName(one, registry.targets));
  const names = [...new Set([...audience, ...meant])];
  if (!names.every(fits)) return err({ kind: "target_malformed" });
  const [first, ...others] = names;
  if (first === undefined) return ok(undefined);
  // RFC8693-2.1.1-2, RFC8707-3-2, RFC9068-3-3, MCP-O.8-2: a token is for one target; several names are accepted if they
  // are names of the same target.
  if (others.some((name) => registry.targets.get(name) !== registry.targets.get(first)))
    return err({ kind: "targets_several" });
  return ok(first);
}
