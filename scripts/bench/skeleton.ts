/**
 * The floor to which the benchmark compares the server: raw callbacks that do the unavoidable work of a token request
 * and nothing else. The same TLS, requests and answers of the same size, the same signatures checked and made, and the
 * same durability: one group commit on SQLite before the answers. It makes no decision and must never serve anything.
 * Arguments: folder of the development profile, port, file of the database.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomUUID,
  sign,
  timingSafeEqual,
  verify,
} from "node:crypto";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import * as v from "valibot";
import { secureContext } from "../../src/http/tls.ts";

const [profile = "", port = "", databaseFile = ""] = process.argv.slice(2);
const read = (name: string): string => readFileSync(join(profile, name), "utf8");

const SECONDS = 300;
const SCOPE = "trips.read";
const API = "https://api.example";
const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();
const secretDigest = sha256(read("clients/nightly-report"));
const { issuer } = v.parse(v.object({ issuer: v.string() }), JSON.parse(read("config.json")));
const Key = v.looseObject({ kty: v.string(), crv: v.string(), x: v.string(), y: v.string() });
const KeySet = v.object({ keys: v.array(v.unknown()) });
/** The last key of a file: that of a bundle for JWTs follows the one for certificates. */
const ecKey = (file: string) => {
  const { kty, crv, x, y } = v.parse(Key, v.parse(KeySet, JSON.parse(read(file))).keys.at(-1));
  return createPublicKey({ key: { kty, crv, x, y }, format: "jwk" });
};
const svidKey = ecKey("trust-domain/bundle.json");
const userKey = ecKey("idp/jwks.json");
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const signingKey = createPrivateKey(privateKey.export({ type: "pkcs8", format: "pem" }));
const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const header = base64url({
  alg: "ES256",
  kid: "skeleton-key-0000000000000000000000000000000",
  typ: "at+jwt",
});

const db = new DatabaseSync(databaseFile);
db.exec("pragma journal_mode = wal; pragma synchronous = full");
db.exec("create table if not exists record (id text primary key, body text not null) strict");
const insert = db.prepare("insert into record (id, body) values (?, ?)");

type Waiting = { response: ServerResponse; id: string; body: string; claims: object };
let waiting: Waiting[] = [];

/** Everything that has come in during one turn of the event loop is written by one commit, then answered. */
function commit(): void {
  const batch = waiting;
  waiting = [];
  db.exec("begin immediate");
  for (const { id, body } of batch) insert.run(id, body);
  db.exec("commit");
  for (const { response, claims, id } of batch) {
    const input = `${header}.${base64url(claims)}`;
    const key = { key: signingKey, dsaEncoding: "ieee-p1363" } as const;
    const signature = sign("sha256", Buffer.from(input), key).toString("base64url");
    const answer = {
      access_token: `${input}.${signature}`,
      issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
      token_type: "Bearer",
      expires_in: SECONDS,
      scope: SCOPE,
    };
    send(response, 200, id, answer);
  }
}

function send(response: ServerResponse, status: number, id: string, answer: object): void {
  const body = JSON.stringify(answer);
  response.writeHead(status, {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    Pragma: "no-cache",
    "X-Request-Id": id,
    "Content-Length": Buffer.byteLength(body),
  });
  response.end(body);
}

/** The claims of a JWT with this signature. */
function verified(compact: string, key: typeof svidKey): Record<string, unknown> | undefined {
  const [first = "", second = "", third = ""] = compact.split(".", 3);
  const signature = Buffer.from(third, "base64url");
  const input = Buffer.from(`${first}.${second}`);
  if (!verify("sha256", input, { key, dsaEncoding: "ieee-p1363" }, signature)) return undefined;
  return JSON.parse(Buffer.from(second, "base64url").toString());
}

/** Who asks, for whom: the client by its secret, or a workload and a user by their tokens. */
function proven(request: IncomingMessage, form: URLSearchParams): { sub: string; act?: object } | undefined {
  const assertion = form.get("client_assertion");
  if (assertion === null) {
    const basic = Buffer.from(
      request.headers.authorization?.slice("Basic ".length) ?? "",
      "base64",
    ).toString();
    const [clientId = "", secret = ""] = basic.split(":", 2);
    return timingSafeEqual(sha256(secret), secretDigest) ? { sub: clientId } : undefined;
  }
  const workload = verified(assertion, svidKey);
  const user = verified(form.get("subject_token") ?? "", userKey);
  if (workload === undefined || user === undefined) return undefined;
  return { sub: String(user.sub), act: { iss: issuer, sub: workload.sub } };
}

function answer(request: IncomingMessage, response: ServerResponse, text: string): void {
  const form = new URLSearchParams(text);
  const id = randomUUID();
  const who = proven(request, form);
  if (who === undefined) {
    send(response, 400, id, { error: "invalid_client" });
    return;
  }
  const now = Math.floor(Date.now() / 1000);
  const jti = randomUUID();
  const claims = {
    iss: issuer,
    ...who,
    aud: API,
    client_id: who.sub,
    scope: SCOPE,
    iat: now,
    exp: now + SECONDS,
    jti,
  };
  // As large as the server's event and token row together.
  const body = JSON.stringify({ claims }).padEnd(who.act === undefined ? 1_600 : 2_600);
  waiting.push({ response, id, body, claims });
  if (waiting.length === 1) setImmediate(commit);
}

const tls = secureContext(read("tls/key.pem"), read("tls/cert.pem"));
const server = createServer({ ...tls, requestCert: true, rejectUnauthorized: false }, (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => answer(request, response, Buffer.concat(chunks).toString()));
});
server.listen(Number(port), "127.0.0.1", () => console.log(`The skeleton listens on ${port}`));
process.on("SIGTERM", () => process.exit());
