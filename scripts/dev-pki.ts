/**
 * A development authority: certificates for the demo, the benchmark and the tests, never for production.
 * SPIFFE X509-SVID (1 July 2026): https://github.com/spiffe/spiffe/tree/main/standards
 * Covers X509-SVID 2 to 4; certificates by RFC 5280.
 */
import type { webcrypto } from "node:crypto";
import { isIP } from "node:net";
import type { Extension, JsonGeneralName, Name, PublicKeyType } from "@peculiar/x509";
import { calculateJwkThumbprint, exportPKCS8, importPKCS8 } from "jose";
import { type Authority, makeKeyPem, makeKeys, publicJwk, type TrustDomain } from "./dev-keys.ts";

// The certificate library requires a decorator metadata polyfill when it is loaded, but does not use it.
for (const name of ["getMetadata", "getOwnMetadata"]) {
  if (!(name in Reflect)) Object.assign(Reflect, { [name]: () => undefined });
}
export const x509 = await import("@peculiar/x509");

const DAY_SECONDS = 24 * 3600;
const AUTHORITY_SECONDS = 10 * 365 * DAY_SECONDS;
// The longest lifetime that common TLS clients accept from a locally added authority.
const SERVER_SECONDS = 825 * DAY_SECONDS;
const SVID_SECONDS = 3600;
// A peer's clock may be a little behind ours.
const BACKDATE_SECONDS = 60;

export type Issued = { keyPem: string; certPem: string };
/** `chainPem` is what the peer sends: the leaf, then the intermediates. */
export type X509Svid = Issued & { chainPem: string };

/** Values that a test may change, to make a certificate that a validator must refuse. `null` omits the extension. */
export type SvidOptions = {
  issuer?: Authority;
  subject?: string;
  names?: JsonGeneralName[];
  notBefore?: Date;
  expSeconds?: number;
  ca?: boolean;
  keyUsage?: number | null;
  extendedKeyUsage?: string[] | null;
  extensions?: Extension[];
};

export async function makeAuthority(name: string): Promise<Authority> {
  return makeSigner(name, []);
}

/** A signing certificate below another; `names` may hold a URI, right or wrong. */
export async function makeIntermediate(
  parent: Authority,
  name: string,
  names: JsonGeneralName[] = [],
): Promise<Authority> {
  return makeSigner(name, names, parent);
}

/** `seconds`: until its end; one that has ended is negative. */
export function issueServerCertificate(
  authority: Authority,
  names: string[],
  seconds = SERVER_SECONDS,
): Promise<Issued> {
  return issueTlsCertificate(authority, names, x509.ExtendedKeyUsage.serverAuth, seconds);
}

/** For TLS clients without a SPIFFE ID. */
export function issueClientCertificate(authority: Authority, names: string[]): Promise<Issued> {
  return issueTlsCertificate(authority, names, x509.ExtendedKeyUsage.clientAuth, SERVER_SECONDS);
}

function issueTlsCertificate(
  authority: Authority,
  names: string[],
  usage: string,
  seconds: number,
): Promise<Issued> {
  return issueLeaf(authority, {
    subject: names[0],
    names: names.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value })),
    seconds,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([usage]),
    ],
  });
}

export async function makeTrustDomain(name: string): Promise<TrustDomain> {
  // X5S-3.2-1: the SPIFFE ID of the authority is that of the trust domain, without a path.
  const names: JsonGeneralName[] = [{ type: "url", value: `spiffe://${name}` }];
  const authority = await makeSigner(name, names);
  const keyPem = await makeKeyPem();
  const kid = await calculateJwkThumbprint(publicJwk(keyPem));
  return { name, sequence: 1, x509: authority, jwt: { kid, keyPem } };
}

export async function mintX509Svid(
  trustDomain: TrustDomain,
  spiffeId: string,
  options: SvidOptions = {},
): Promise<X509Svid> {
  const issuer = options.issuer ?? trustDomain.x509;
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  const { ca = false, keyUsage = x509.KeyUsageFlags.digitalSignature } = options;
  const { extendedKeyUsage = [serverAuth, clientAuth] } = options;
  // X5S-4.1-1: a leaf is not an authority.
  const extensions: Extension[] = [new x509.BasicConstraintsExtension(ca, undefined, true)];
  // X5S-4.3-1, X5S-4.3-3, X5S-4.3-4: key usage is critical and permits signing data, not certificates.
  if (keyUsage !== null) extensions.push(new x509.KeyUsagesExtension(keyUsage, true));
  // X5S-4.4-1, X5S-4.4-2: server and client authentication.
  if (extendedKeyUsage !== null) extensions.push(new x509.ExtendedKeyUsageExtension(extendedKeyUsage));
  const leaf = await issueLeaf(issuer, {
    subject: options.subject,
    // X5S-2-1: one URI, one SPIFFE ID.
    names: options.names ?? [{ type: "url", value: spiffeId }],
    notBefore: options.notBefore,
    seconds: options.expSeconds ?? SVID_SECONDS,
    extensions: [...extensions, ...(options.extensions ?? [])],
  });
  return { ...leaf, chainPem: leaf.certPem + issuer.intermediatesPem };
}

type Issuer = { subject: Name; publicKey: PublicKeyType; keyPem: string };

type Content = {
  subject: string | undefined;
  names: JsonGeneralName[];
  notBefore?: Date | undefined;
  seconds: number;
  extensions: Extension[];
};

async function makeSigner(name: string, names: JsonGeneralName[], parent?: Authority): Promise<Authority> {
  const keys = await makeKeys();
  const keyPem = await exportPKCS8(keys.privateKey);
  const { keyCertSign, cRLSign } = x509.KeyUsageFlags;
  const itself = { subject: nameOf(name), publicKey: keys.publicKey, keyPem };
  const certPem = await certify(parent === undefined ? itself : issuerOf(parent), keys.publicKey, {
    subject: name,
    names,
    seconds: AUTHORITY_SECONDS,
    extensions: [
      // X5S-4.1-1, X5S-4.3-1, X5S-4.3-2: an authority whose key signs certificates; both extensions are critical.
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(keyCertSign | cRLSign, true),
    ],
  });
  const intermediatesPem = parent === undefined ? "" : certPem + parent.intermediatesPem;
  return { name, keyPem, certPem, intermediatesPem };
}

async function issueLeaf(authority: Authority, content: Content): Promise<Issued> {
  const keys = await makeKeys();
  const certPem = await certify(issuerOf(authority), keys.publicKey, content);
  return { keyPem: await exportPKCS8(keys.privateKey), certPem };
}

async function certify(issuer: Issuer, publicKey: webcrypto.CryptoKey, content: Content): Promise<string> {
  const { subject, names } = content;
  const extensions = [
    ...content.extensions,
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
  ];
  if (names.length > 0) {
    // X5S-3.1-3: without a subject the alternative names are critical.
    extensions.push(new x509.SubjectAlternativeNameExtension(names, subject === undefined));
  }
  const certificate = await x509.X509CertificateGenerator.create({
    subject: nameOf(subject),
    issuer: issuer.subject,
    publicKey,
    signingKey: await importPKCS8(issuer.keyPem, "ES256"),
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    notBefore: content.notBefore ?? new Date(Date.now() - BACKDATE_SECONDS * 1000),
    notAfter: new Date(Date.now() + content.seconds * 1000),
    extensions,
  });
  return `${certificate.toString("pem")}\n`;
}

function issuerOf(authority: Authority): Issuer {
  const { subjectName, publicKey } = new x509.X509Certificate(authority.certPem);
  return { subject: subjectName, publicKey, keyPem: authority.keyPem };
}

/** Built from data instead of text, so that no character of the name is parsed as syntax. */
function nameOf(commonName: string | undefined): Name {
  return new x509.Name(commonName === undefined ? [] : [{ CN: [commonName] }]);
}
