import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AuthMethod,
  type ClientSource,
  methodsFrom,
  registrableMethods,
  servedMethods,
} from "../../src/settings/authentication-methods.ts";

const SECRET: readonly AuthMethod[] = ["client_secret_basic", "client_secret_post"];
const SPIFFE: readonly AuthMethod[] = ["spiffe_jwt", "spiffe_x509"];
const SUBJECT: readonly AuthMethod[] = ["tls_client_auth"];
const REST: readonly AuthMethod[] = ["private_key_jwt", "self_signed_tls_client_auth"];
const PUBLIC: readonly AuthMethod[] = ["none"];
const EITHER: readonly AuthMethod[] = ["client_secret"];
const ALL = [...SECRET, ...REST, ...SPIFFE, ...SUBJECT];

const sources: readonly (readonly [name: string, ClientSource, readonly AuthMethod[]])[] = [
  ["PROD-0-2 a configured client may have any method", "configuration", [...EITHER, ...ALL, ...PUBLIC]],
  ["a client made on the host has a secret", "operator", [...EITHER, ...SECRET]],
  ["RFC7591-2-5, PROD-2.2-12 a registered client may have any method", "registration", [...ALL, ...PUBLIC]],
  [
    "CIMD-8.2-1, CIMD-4.1-1 a document names no secret and no subject",
    "metadata_document",
    [...SPIFFE, ...REST, ...PUBLIC],
  ],
];
for (const [name, source, want] of sources) {
  test(name, () => {
    assert.deepEqual(Object.keys(methodsFrom(source)).sort(), [...want].sort());
  });
}

const TRUST = new Map([["td.example", {}]]);

test("SPCA-4-3, PROD-4.4-12 a SPIFFE method is served where there is a trust domain, and any other one always", () => {
  assert.deepEqual(
    [...servedMethods({ trustDomains: TRUST, takesCertificates: true })].sort(),
    [...ALL].sort(),
  );
  assert.deepEqual(
    [...servedMethods({ trustDomains: new Map(), takesCertificates: true })].sort(),
    [...SECRET, ...REST, ...SUBJECT].sort(),
  );
});

test("PROD-4.4-12 a method by certificate is served where a listener takes certificates", () => {
  const settings = { trustDomains: TRUST, takesCertificates: false, registration: { tlsAnchors: [] } };
  const byCertificate = ["spiffe_x509", "tls_client_auth", "self_signed_tls_client_auth"];
  const want = ALL.filter((method) => !byCertificate.includes(method)).sort();
  assert.deepEqual([...servedMethods(settings)].sort(), want);
  assert.deepEqual(registrableMethods(settings).toSorted(), want);
});

test("MCPC-D-7, PROD-4.4-12 the method none is served where users sign in", () => {
  const settings = { trustDomains: new Map(), signIn: {}, takesCertificates: true };
  assert.ok(servedMethods(settings).includes("none"));
  assert.ok(registrableMethods({ ...settings, registration: {} }).includes("none"));
});

test("PROD-4.4-12 a method can be registered where it is served, and a subject where an authority can vouch for it", () => {
  const registrable = (
    trustDomains: ReadonlyMap<string, object>,
    registration: { tlsAnchors?: Uint8Array[] },
  ) => registrableMethods({ trustDomains, registration, takesCertificates: true });
  const tlsAnchors = [Uint8Array.of(1)];
  assert.deepEqual(registrable(TRUST, { tlsAnchors }).toSorted(), ALL.toSorted());
  assert.deepEqual(registrable(TRUST, {}).toSorted(), [...SECRET, ...REST, ...SPIFFE].toSorted());
  assert.deepEqual(
    registrable(new Map(), { tlsAnchors }).toSorted(),
    [...SECRET, ...REST, ...SUBJECT].toSorted(),
  );
});
