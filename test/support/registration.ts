/** What clients send to `/register`, what they do with what they got, and what an operator does about it. */
import assert from "node:assert/strict";
import { createPrivateKey, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { type Answer, basic, type Form } from "../../scripts/http-client.ts";
import { MACHINE_GRANT_TYPES } from "../../src/modes.ts";
import { claimsOf, type Event, ISSUER, type World } from "./world.ts";

export const API = "https://api.example";
export const CC = { grant_type: "client_credentials" };
export const GRANT_TYPES = [...MACHINE_GRANT_TYPES];
/** Nobody waits, unless a test is about that. */
export const PATIENT = {
  ...{ failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
  registrationRequestsPerMinuteByClient: 100_000,
  ...{ fetchesPerMinuteBySource: 1000, fetchesPerMinuteByHost: 1000 },
};

const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

export type Metadata = Record<string, unknown>;
export type Registered = Metadata & {
  client_id: string;
  client_secret: string;
  registration_access_token: string;
};

// --- requests -----------------------------------------------------------------------------------------------------

export const JSON_TYPE = { "content-type": "application/json" };

export const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** A text is sent as it is; other metadata ask for every served grant type, unless they have `grant_types`. */
export function post(
  at: World,
  body: Metadata | string,
  headers: Record<string, string> = {},
  port = at.server.port,
): Promise<Answer> {
  return at.get("/register", {
    ...{ method: "POST", headers: { ...JSON_TYPE, ...headers } },
    ...{
      body: typeof body === "string" ? body : JSON.stringify({ grant_types: GRANT_TYPES, ...body }),
      connect: { host: "127.0.0.1", port },
    },
  });
}

export function byBasic(
  { client_id, client_secret }: Registered,
  at: World,
  form: Form = {},
  port = at.server.port,
): Promise<Answer> {
  const headers = { authorization: basic(client_id, client_secret) };
  return at.token({ ...CC, audience: API, ...form }, headers, {}, port);
}

let jtis = 0;

/** A form that authenticates by this key, which is known as `k1`. */
export function assertion(client: string, pem: string): Form {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const iat = Math.floor(Date.now() / 1000);
  const claims = { iss: client, sub: client, aud: ISSUER, iat, exp: iat + 60, jti: `j-${++jtis}` };
  const input = `${encode({ alg: "ES256", kid: "k1" })}.${encode(claims)}`;
  const key = { key: createPrivateKey(pem), dsaEncoding: "ieee-p1363" } as const;
  const signature = sign("sha256", Buffer.from(input), key).toString("base64url");
  return { client_assertion_type: JWT_BEARER, client_assertion: `${input}.${signature}` };
}

// --- answers ------------------------------------------------------------------------------------------------------

export function assertRegistered(answer: Answer): Registered {
  assert.equal(answer.status, 201, answer.text);
  return answer.body as Registered;
}

export function assertError(answer: Answer, status: number, error: string): void {
  assert.deepEqual([answer.status, answer.body.error], [status, error], answer.text);
  assert.equal(answer.headers["content-type"], "application/json");
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.equal(answer.headers.pragma, "no-cache");
  assert.match(String(answer.body.error_description), /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
}

/** RFC 6750 3: without a token the challenge has no error code; the body of a registration may have one. */
export function assertChallenge(answer: Answer, status: number, error: string | undefined): void {
  assert.equal(answer.status, status, answer.text);
  if (error !== undefined) assert.equal(answer.body.error, error, answer.text);
  const challenge = answer.headers["www-authenticate"] ?? "";
  assert.match(challenge, /^Bearer realm="as\.example"/);
  assert.equal(/\berror="(\w+)"/.exec(challenge)?.[1], error);
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.equal(answer.headers.pragma, "no-cache");
}

/** Of this client, for itself. */
export function assertToken(answer: Answer, clientId: string, scope = "read write"): void {
  assert.equal(answer.status, 200, answer.text);
  const { client_id, sub, scope: granted } = claimsOf(answer.body.access_token);
  assert.deepEqual([client_id, sub, granted], [clientId, clientId, scope]);
}

// --- the operator -------------------------------------------------------------------------------------------------

type Config = {
  registration: Metadata;
  policies: Metadata[];
  trustedIssuers: Record<string, Metadata>;
  trustDomains: Record<string, { admit: string[] }>;
};

/** Brings a changed configuration into force. */
export async function reload(at: World, change: (config: Config) => void): Promise<void> {
  const config = JSON.parse(readFileSync(at.configFile, "utf8"));
  change(config);
  writeFileSync(at.configFile, JSON.stringify(config));
  assert.deepEqual(await at.server.reload(), []);
}

type Told = Event & { detail: Metadata };

export const lastEvent = async (at: World, type: string): Promise<Told | undefined> =>
  (await at.events()).findLast((event) => event.type === type) as Told | undefined;
