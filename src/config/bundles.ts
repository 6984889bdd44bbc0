/** Bundle endpoints: the URL of a trust domain's bundle, and how the server there is authenticated. */
import type { RemoteDocument, SpiffeEndpoint } from "../settings/settings.ts";
import { parseBundle } from "../spec/spiffe/bundle.ts";
import { describeContent } from "./file-contents.ts";
import type { Reader } from "./reader.ts";
import type { BundleEndpoint } from "./trust-schema.ts";

/**
 * Makes the reader of bundle files. They are read again while the server runs, so that one does not stop a start or a
 * reload; the operator is told. A file is looked into once, of however many trust domains it is.
 */
export function bundleFiles({ locate, peek, warnings }: Reader) {
  const faults = new Map<string, string | undefined>();
  return (trustDomain: string, name: string): { file: string } => {
    const why = faults.getOrInsertComputed(name, () => whyNoBundle(name, peek(name)));
    if (why !== undefined) {
      const left = "the last good copy stays in use, and without one the workloads are refused";
      warnings.push(`trustDomains.${trustDomain}.bundle.file: ${why}: ${left}`);
    }
    return { file: locate(name) };
  };
}

function whyNoBundle(name: string, content: ReturnType<Reader["peek"]>): string | undefined {
  if (content?.ok !== true) return content?.error;
  if (parseBundle(content.value).ok) return undefined;
  return `${name} is not a trust bundle${describeContent(content.value, "a trust bundle")}`;
}

/**
 * SFD-5.1-1, SFD-5.2.1.4-2, SFD-7.2-1: trust domain, URL and profile are all configured; a setting of one profile is an
 * error in the other.
 */
export function readBundleEndpoint(
  trustDomain: string,
  { profile, endpointSpiffeId, bootstrap, ...remote }: BundleEndpoint,
  { problem, readText, readRemote }: Reader,
): RemoteDocument | SpiffeEndpoint {
  const path = `trustDomains.${trustDomain}.bundle`;
  const endpoint = readRemote(path, remote);
  if (profile === "https_web") {
    for (const [name, value] of Object.entries({ endpointSpiffeId, bootstrap })) {
      if (value !== undefined) problem(`${path}.${name}`, 'is allowed with "profile": "https_spiffe" only');
    }
    return endpoint;
  }
  if (remote.ca !== undefined) problem(`${path}.ca`, 'is allowed with "profile": "https_web" only');
  // SFD-5.2.2.2-1: the endpoint's SPIFFE ID and a bootstrap bundle are required.
  if (endpointSpiffeId === undefined) problem(`${path}.endpointSpiffeId`, "is missing");
  else if (!endpointSpiffeId.startsWith(`spiffe://${trustDomain}/`)) {
    problem(`${path}.endpointSpiffeId`, "is not in this trust domain");
  }
  if (bootstrap === undefined) problem(`${path}.bootstrap`, "is missing");
  const text = bootstrap && readText(`${path}.bootstrap.file`, bootstrap.file);
  const bundle = text === undefined ? undefined : parseBundle(text);
  if (bundle !== undefined && !(bundle.ok && bundle.value.x509Authorities.length > 0)) {
    problem(`${path}.bootstrap.file`, "is not a bundle with X.509 authorities");
  }
  return {
    url: endpoint.url,
    privateNetworks: endpoint.privateNetworks,
    endpointSpiffeId: endpointSpiffeId ?? "",
    bootstrap: bundle?.ok ? bundle.value : { jwtKeys: [], x509Authorities: [] },
  };
}
