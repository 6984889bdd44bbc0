/** What is parsed without a request: documents of clients, issuers and providers, certificates, and fields of proxies. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { bundle, derOf, type TrustDomain } from "../../scripts/dev-keys.ts";
import { readTraceparent } from "../../src/http/trace-context.ts";
import { checkIdToken, parseProviderMetadata, parseTokenAnswer } from "../../src/people/spec/oidc.ts";
import { parseClientDocument } from "../../src/settings/client-metadata.ts";
import { PROXY_FORMS, readForwarded } from "../../src/settings/proxy-forms.ts";
import { parsePng } from "../../src/spec/png.ts";
import { parseCertificate } from "../../src/spec/rfc5280.ts";
import { parseForwarded } from "../../src/spec/rfc7239.ts";
import { parseJwkSet } from "../../src/spec/rfc7517.ts";
import { isJsonObject, parseJson } from "../../src/spec/rfc8259.ts";
import { parseBundle } from "../../src/spec/spiffe/bundle.ts";
import { png } from "../../test/support/png.ts";
import type { Kind } from "./kinds.ts";

const JWT_DEPTH = 16;
const NOW = 1_800_000_000;
const CLAIMS = {
  iss: "https://a",
  sub: "alice",
  nonce: "n",
  acr: "b",
  iat: NOW,
  exp: NOW + 60,
  auth_time: NOW,
};
const ID_TOKEN = {
  ...{
    issuer: "https://a",
    clientId: "us",
    algorithm: "ES256",
    nonce: "n",
    maxAgeSeconds: 60,
    requiredAcr: ["b"],
  },
  ...{ nowSeconds: NOW, startedAtSeconds: NOW },
};
const ZOO = new URL("../../test/zoo/", import.meta.url);

/** Valid samples, and what reads them; it returns whether it took one. */
export type Reader = {
  kind: Kind;
  samples: readonly (string | Uint8Array)[];
  read(input: string & Uint8Array): boolean;
};

const zoo = readdirSync(ZOO).map((name) => JSON.parse(readFileSync(new URL(name, ZOO), "utf8")));
const ofKind = (kind: string): readonly { sent: unknown }[] => zoo.filter((one) => one.kind === kind);
const samplesOf = (kind: string): string[] => ofKind(kind).map(({ sent }) => JSON.stringify(sent));

const sha256 = (data: Uint8Array): string => createHash("sha256").update(data).digest("base64url");

export function readersFor(trustDomain: TrustDomain): Record<string, Reader> {
  const certificate = derOf(trustDomain.x509.certPem);
  const written = { DER: certificate.toString("base64"), PEM: encodeURIComponent(trustDomain.x509.certPem) };
  const forwarded = ofKind("proxy")
    .flatMap(({ sent }) => Object.values(Object(sent)).flat())
    .map((value) => String(value).replace(/DER|PEM/g, (name) => Object(written)[name]));
  const issuer = "https://login.example";
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/a`,
    token_endpoint: `${issuer}/t`,
    jwks_uri: `${issuer}/k`,
  };
  const forms = Object.keys(PROXY_FORMS) as (keyof typeof PROXY_FORMS)[];
  return {
    "a client's document": {
      kind: "document",
      samples: samplesOf("document"),
      read: (text) => parseClientDocument("https://helper.example/client.json", text).ok,
    },
    "a key set": { kind: "document", samples: samplesOf("keys"), read: (text) => parseJwkSet(text).ok },
    "a SPIFFE bundle": {
      kind: "document",
      samples: [JSON.stringify(bundle(trustDomain))],
      read: (text) => parseBundle(text).ok,
    },
    "a provider's metadata": {
      kind: "document",
      samples: [JSON.stringify({ ...metadata, subject_types_supported: ["public"] })],
      read: (text) => parseProviderMetadata(text, issuer).ok,
    },
    "a provider's token answer": {
      kind: "document",
      samples: [
        JSON.stringify({ access_token: "a", token_type: "Bearer", id_token: "a.b.c", refresh_token: "r" }),
      ],
      read: (text) => parseTokenAnswer(text).ok,
    },
    "an ID token's claims": {
      kind: "JWT",
      samples: [
        JSON.stringify({ ...CLAIMS, aud: "us" }),
        JSON.stringify({ ...CLAIMS, aud: ["us"], azp: "us" }),
      ],
      read: (text) => {
        const claims = parseJson(text, JWT_DEPTH);
        return claims.ok && isJsonObject(claims.value) && checkIdToken(claims.value, ID_TOKEN).ok;
      },
    },
    "a proxy's certificate": {
      kind: "header",
      samples: forwarded,
      read: (text) =>
        forms.map((form) => readForwarded(form, [text, undefined], sha256)).some(({ ok }) => ok),
    },
    "a proxy's address": {
      kind: "header",
      samples: ['for=192.0.2.1, for="[2001:db8::1]:47";proto=https;by=_x', "192.0.2.1, 2001:db8::1"],
      read: (text) =>
        [parseForwarded("Forwarded", text), parseForwarded("X-Forwarded-For", text)].some(({ ok }) => ok),
    },
    "a trace": {
      kind: "header",
      samples: ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
      read: (text) => readTraceparent(text) !== undefined,
    },
    "a certificate": {
      kind: "certificate",
      samples: [certificate],
      read: (bytes) => parseCertificate(bytes).ok,
    },
    "a logo": { kind: "document", samples: [png(8, 8)], read: (bytes) => parsePng(bytes).ok },
  };
}
