/** X.509 certificates of P-256 keys, written as DER: authorities, servers, clients and SVIDs of the suite, never for use. */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from "node:crypto";

/** PEM for Node, DER to compare with. */
export type Identity = { key: string; cert: string; der: Buffer };
export type Authority = Identity & { name: string; privateKey: KeyObject };

export type Names = { dns?: readonly string[]; ips?: readonly string[]; uris?: readonly string[] };

const tlv = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
};
const sequence = (...parts: readonly Uint8Array[]): Buffer => tlv(0x30, ...parts);
const octets = (...parts: readonly Uint8Array[]): Buffer => tlv(0x04, ...parts);
const context = (tag: number, ...parts: readonly Uint8Array[]): Buffer => tlv(0xa0 | tag, ...parts);
const TRUE = tlv(0x01, Buffer.from([0xff]));

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const digits = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return tlv(0x06, Buffer.from(bytes));
}

const ECDSA_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));
const nameOf = (text: string): Buffer =>
  sequence(tlv(0x31, sequence(oid("2.5.4.3"), tlv(0x0c, Buffer.from(text)))));
/** UTCTime, as RFC 5280 wants it before 2050. */
const time = (ms: number): Buffer =>
  tlv(0x17, Buffer.from(`${new Date(ms).toISOString().replaceAll(/[-:T]/g, "").slice(2, 14)}Z`));
const extension = (id: string, value: Buffer, critical = false): Buffer =>
  critical ? sequence(oid(id), TRUE, octets(value)) : sequence(oid(id), octets(value));

/** DER leaves out the bits of zero at the end. */
const keyUsage = (bits: number): Buffer =>
  extension("2.5.29.15", tlv(0x03, Buffer.from([Math.clz32(bits & -bits) ^ 31, bits])), true);
const DIGITAL_SIGNATURE = 0x80;
const SIGNS_CERTIFICATES = 0x06;

const alternative = ({ dns = [], ips = [], uris = [] }: Names): Buffer =>
  extension(
    "2.5.29.17",
    sequence(
      ...dns.map((name) => tlv(0x82, Buffer.from(name))),
      ...uris.map((uri) => tlv(0x86, Buffer.from(uri))),
      ...ips.map((ip) => tlv(0x87, Buffer.from(ip.split(".").map(Number)))),
    ),
  );

const keyId = (spki: Buffer): Buffer => createHash("sha1").update(spki).digest();

type Ask = {
  subject: string;
  issuer?: Authority | undefined;
  extensions: readonly Buffer[];
  lastsMs?: number;
  keys?: KeyObject;
};

function certify({ subject, issuer, extensions, lastsMs = 86_400_000, keys }: Ask): Authority {
  const privateKey = keys ?? generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const spki = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  const signer = issuer?.privateKey ?? privateKey;
  const above = createPublicKey(signer).export({ type: "spki", format: "der" });
  const identifiers = [
    extension("2.5.29.14", octets(keyId(spki))),
    extension("2.5.29.35", sequence(tlv(0x80, keyId(above)))),
  ];
  const from = Date.now() - 3_600_000;
  const body = sequence(
    context(0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ECDSA_SHA256,
    nameOf(issuer?.name ?? subject),
    sequence(time(lastsMs < 0 ? from - 3_600_000 : from), time(Date.now() + lastsMs)),
    nameOf(subject),
    spki,
    context(3, sequence(...extensions, ...identifiers)),
  );
  const signature = sign("sha256", body, signer);
  const der = sequence(body, ECDSA_SHA256, tlv(0x03, Buffer.from([0]), signature));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  const cert = ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
  const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  return { key, cert, der, name: subject, privateKey };
}

export function makeAuthority(name: string, uris: readonly string[] = []): Authority {
  const extensions = [extension("2.5.29.19", sequence(TRUE), true), keyUsage(SIGNS_CERTIFICATES)];
  return certify({
    subject: name,
    extensions: uris.length === 0 ? extensions : [...extensions, alternative({ uris })],
  });
}

type Leaf = { usage?: "server" | "client"; isAuthority?: boolean; signs?: boolean; lastsMs?: number };

/** Of `issuer`, or self-signed without one. */
export function makeCertificate(
  subject: string,
  names: Names,
  issuer?: Authority,
  { usage, isAuthority = false, signs = true, lastsMs }: Leaf = {},
): Identity {
  const uses = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" };
  const extensions = [
    extension("2.5.29.19", isAuthority ? sequence(TRUE) : sequence(), true),
    keyUsage(isAuthority ? SIGNS_CERTIFICATES : signs ? DIGITAL_SIGNATURE : 0x20),
    alternative(names),
    extension("2.5.29.37", sequence(...(usage === undefined ? Object.values(uses) : [uses[usage]]).map(oid))),
  ];
  return certify({ subject, issuer, extensions, ...(lastsMs !== undefined && { lastsMs }) });
}

/** The public key of a certificate's holder. */
export const publicJwkOf = ({ key }: Identity): Record<string, unknown> =>
  createPublicKey(key).export({ format: "jwk" }) as Record<string, unknown>;
