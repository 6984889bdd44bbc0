/** RFC 8705 over the wire: a certificate is accepted only with proof of its key, at the endpoints in the metadata. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import { publicJwk } from "../../scripts/dev-keys.ts";
import { mintX509Svid } from "../../scripts/dev-pki.ts";
import type { Answer } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import { type Certificate, claimsOf, ISSUER, makeWorld, type World, workload } from "../support/world.ts";

const API = "https://api.example";
const CC = { grant_type: "client_credentials" };
const planner = workload("agents/planner");

let world: World;

before(async () => {
  world = await makeWorld({
    registration: { mode: "initial-access-token" },
    targets: [{ names: [API], scopes: ["read"] }],
    policies: [
      {
        id: "workloads",
        allow: "client_credentials",
        actors: [workload("*")],
        targets: [API],
        scopes: ["read"],
      },
    ],
  });
});

after(() => stop(world));

const shown = async (): Promise<Required<Certificate>> => {
  const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, planner);
  return { key: keyPem, cert: chainPem };
};

function der(tag: number, ...content: Uint8Array[]): Buffer {
  const bytes = Buffer.concat(content);
  return Buffer.concat([
    Buffer.from(bytes.length < 128 ? [tag, bytes.length] : [tag, 129, bytes.length]),
    bytes,
  ]);
}

const P256 = Buffer.from("06082a8648ce3d030107", "hex");

/** RFC 5915: a key file with another private key beside this public key, so that a TLS library uses the certificate. */
function stolen({ key }: Required<Certificate>): string {
  const { x, y } = publicJwk(key);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { d = "" } = privateKey.export({ format: "jwk" });
  const point = Buffer.concat([Buffer.from([0, 4]), ...[x, y].map((part) => Buffer.from(part, "base64url"))]);
  const secret = der(4, Buffer.from(d, "base64url"));
  const bytes = der(48, der(2, Buffer.from([1])), secret, der(160, P256), der(161, der(3, point)));
  return `-----BEGIN EC PRIVATE KEY-----\n${bytes.toString("base64")}\n-----END EC PRIVATE KEY-----\n`;
}

/** The first bytes of the response, or what ended the connection. */
async function ask(certificate: Certificate, maxVersion: "TLSv1.2" | "TLSv1.3"): Promise<string> {
  const at = { host: "127.0.0.1", port: world.server.port, servername: "as.example", ca: world.ca };
  const socket = connect({ ...at, ...certificate, maxVersion });
  const body = `grant_type=client_credentials&audience=${encodeURIComponent(API)}`;
  const head = ["POST /token HTTP/1.1", "Host: as.example", `Content-Length: ${body.length}`];
  socket.write(`${head.join("\r\n")}\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n${body}`);
  try {
    const [chunk] = await Promise.race([once(socket, "data"), once(socket, "close").then(() => ["closed"])]);
    return String(chunk);
  } catch (error) {
    return String(error);
  } finally {
    socket.destroy();
  }
}

for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
  test(`RFC8705-1.2-1 a certificate without proof of its private key ends the handshake, in ${version}`, async () => {
    const certificate = await shown();
    assert.match(await ask(certificate, version), /^HTTP\/1\.1 200 /);
    const thief = { ...certificate, key: stolen(certificate) };
    assert.match(await ask(thief, version), /alert decrypt error/);
    assert.match(await ask({}, version), /^HTTP\/1\.1 400 /);
  });
}

const ENDPOINT = /^(?!mtls_).*_endpoint$/;

test("RFC8705-5-4 without aliases the endpoints that authenticate clients accept certificates, and no other endpoint does", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.equal(body.mtls_endpoint_aliases, undefined);
  const told = Object.keys(body).filter((name) => ENDPOINT.test(name));
  assert.deepEqual(told.sort(), [
    "introspection_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
    "token_endpoint",
  ]);
  assert.equal(body.token_endpoint, `${ISSUER}/token`);
  const certificate = await shown();
  const answer: Answer = await world.token(CC, {}, certificate);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(claimsOf(answer.body.access_token).client_id, planner);
  assert.equal((await world.token(CC)).body.error, "invalid_client");
  // Registration requires a token, which a certificate does not replace.
  const registered = await world.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
    ...certificate,
  });
  assert.equal(registered.status, 401, registered.text);
});
