/** The `trustDomains` section: which workloads are admitted, and where the bundle is and how its server is authenticated. */
import { defined } from "../result.ts";
import type { RemoteDocument, SpiffeEndpoint, TrustDomain } from "../settings/settings.ts";
import { parseBundle } from "../spec/spiffe/bundle.ts";
import { isTrustDomainName } from "../spec/spiffe/id.ts";
import { describeContent } from "./file-contents.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";
import type { BundleEndpoint } from "./trust-schema.ts";

export function readTrustDomains(
  { trustDomains, trustedIssuers }: ConfigFile,
  reader: Reader,
): ReadonlyMap<string, TrustDomain> {
  const { problem } = reader;
  const read = new Map<string, TrustDomain>();
  const readBundleFile = bundleFiles(reader);
  for (const [name, domain] of Object.entries(trustDomains)) {
    const path = `trustDomains.${name}`;
    if (!isTrustDomainName(name)) problem(path, "is not the name of a trust domain");
    const foreign =
      typeof domain.admit === "string"
        ? []
        : domain.admit.filter((one) => !one.startsWith(`spiffe://${name}/`));
    for (const one of foreign) problem(`${path}.admit`, `${one} is not in this trust domain`);
    const bundle =
      "file" in domain.bundle
        ? readBundleFile(name, domain.bundle.file)
        : readBundleEndpoint(name, domain.bundle, reader);
    // SPCA-D-1: the same claims would name an SVID, and a client or workload by the keys of that issuer.
    const { workloads = {}, vouches } = trustedIssuers[domain.jwtIssuer ?? ""] ?? {};
    if (vouches !== undefined || Object.keys(workloads).length > 0) {
      problem(
        `${path}.jwtIssuer`,
        `is an issuer of trustedIssuers with "workloads" or "vouches": a JWT of it would have two readings`,
      );
    }
    read.set(name, defined<TrustDomain>({ ...domain, name, bundle }));
  }
  return read;
}

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
function readBundleEndpoint(
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
