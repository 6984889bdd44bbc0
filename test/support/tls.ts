/** Throw-away certificates for tests over real TLS: an authority, what it issues, and a server name that is local. */
import type * as X509 from "@peculiar/x509";

/** PEM for Node, DER to compare with. */
export type Identity = { key: string; cert: string; der: Uint8Array };

export type ClientOptions = { name?: string; uris?: readonly string[]; lifetimeSeconds?: number };

export type Authority = Identity & {
  issueServer(): Promise<Identity>;
  issueClient(options?: ClientOptions): Promise<Identity>;
  issueAuthority(name: string): Promise<Authority>;
};

// The package's dependency injection looks for a metadata polyfill and needs no metadata: two empty answers do.
Object.assign(Reflect, { getMetadata: () => undefined, getOwnMetadata: () => undefined });
const x509: typeof X509 = await import("@peculiar/x509");
x509.cryptoProvider.set(crypto);

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

type Keys = { publicKey: CryptoKey; privateKey: CryptoKey };

const newKeys = (): Promise<Keys> => crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);

export async function createAuthority(name = "Test authority"): Promise<Authority> {
  const keys = await newKeys();
  return authority(await certify(keys, name, AUTHORITY(), { keys, name }), keys, name);
}

const AUTHORITY = (): X509.Extension[] => [
  new x509.BasicConstraintsExtension(true, undefined, true),
  new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
];

const LEAF = (usage: X509.ExtendedKeyUsage): X509.Extension[] => [
  new x509.BasicConstraintsExtension(false, undefined, true),
  new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
  new x509.ExtendedKeyUsageExtension([usage]),
];

function authority(identity: Identity, keys: Keys, name: string): Authority {
  const issuer = { keys, name };
  return {
    ...identity,
    async issueServer() {
      const names = new x509.SubjectAlternativeNameExtension([
        { type: "dns", value: "localhost" },
        { type: "ip", value: "127.0.0.1" },
      ]);
      const extensions = [...LEAF(x509.ExtendedKeyUsage.serverAuth), names];
      return certify(await newKeys(), "localhost", extensions, issuer);
    },
    async issueClient({ name: subject = "client", uris = [], lifetimeSeconds = 3600 } = {}) {
      const extensions = LEAF(x509.ExtendedKeyUsage.clientAuth);
      if (uris.length > 0) {
        const names = uris.map((value) => ({ type: "url" as const, value }));
        extensions.push(new x509.SubjectAlternativeNameExtension(names));
      }
      return certify(await newKeys(), subject, extensions, issuer, lifetimeSeconds);
    },
    async issueAuthority(subject) {
      const below = await newKeys();
      return authority(await certify(below, subject, AUTHORITY(), issuer), below, subject);
    },
  };
}

async function certify(
  keys: Keys,
  subject: string,
  extensions: X509.Extension[],
  issuer: { keys: Keys; name: string },
  lifetimeSeconds = 3600,
): Promise<Identity> {
  // Key identifiers, as real authorities set them: chains are linked by them and not by name alone.
  const identifiers = [
    await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuer.keys.publicKey),
  ];
  const now = Date.now();
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [subject] }],
    issuer: [{ CN: [issuer.name] }],
    notBefore: new Date(now - 60_000),
    notAfter: new Date(now + lifetimeSeconds * 1000),
    publicKey: keys.publicKey,
    signingKey: issuer.keys.privateKey,
    signingAlgorithm: ALGORITHM,
    extensions: [...extensions, ...identifiers],
  });
  const key = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    key: x509.PemConverter.encode(key, "PRIVATE KEY"),
    cert: certificate.toString("pem"),
    der: new Uint8Array(certificate.rawData),
  };
}
