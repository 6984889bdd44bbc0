/** What clients publish of themselves, told page by page and counted, and the assertions by which they prove it. */
import { createPrivateKey, randomUUID, sign } from "node:crypto";
import { makeKeyPem, publicJwk } from "../../scripts/dev-keys.ts";
import { MACHINE_GRANT_TYPES } from "../../src/modes.ts";
import { LOOPBACK, startWebServer, type WebServer } from "./web.ts";
import { type Form, ISSUER } from "./world.ts";

/** JSON with status 200, if nothing else is said. */
export type Page = {
  status?: number;
  body?: string;
  headers?: Record<string, string>;
  /** Nobody is answered before. */
  after?: Promise<unknown>;
};

export type Publisher = WebServer & {
  /** By path; what is not there is 404. Whoever names the `etag` of a page is told that it is still that one. */
  pages: Map<string, Page>;
  /** Every request for this path, oldest first. */
  requests(path: string): readonly Request[];
  /** How many there were, whatever the path. */
  count(): number;
};

export async function startPublisher(): Promise<Publisher> {
  const pages = new Map<string, Page>();
  const requests: Request[] = [];
  const pathOf = ({ url }: Request): string => new URL(url).pathname;
  const server = await startWebServer(async (request) => {
    requests.push(request);
    const { status = 200, body = "", headers = {}, after } = pages.get(pathOf(request)) ?? { status: 404 };
    await after;
    const { etag } = headers;
    if (etag !== undefined && request.headers.get("if-none-match") === etag) {
      return new Response(null, { status: 304, headers });
    }
    return new Response(body, { status, headers: { "content-type": "application/json", ...headers } });
  });
  return {
    ...server,
    pages,
    requests: (path) => requests.filter((request) => pathOf(request) === path),
    count: () => requests.length,
  };
}

/** The document of the client of this name, which asks for every served grant type unless `members` say otherwise. */
export function publish(
  { origin, pages }: Publisher,
  path: string,
  members: object,
  rest: Page = {},
): string {
  const usual = { client_name: "Cart agent", grant_types: MACHINE_GRANT_TYPES };
  const document = { client_id: `${origin}${path}`, ...usual, ...members };
  pages.set(path, { body: JSON.stringify(document), ...rest });
  return `${origin}${path}`;
}

export function publishKeys(
  { origin, pages }: Publisher,
  path: string,
  keys: readonly Key[],
  rest: Page = {},
): string {
  pages.set(path, { body: JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }), ...rest });
  return `${origin}${path}`;
}

/** What a document says whose client proves itself by a key. */
export const byKey = (members: object): object => ({
  token_endpoint_auth_method: "private_key_jwt",
  ...members,
});

/** What a configuration says of these servers, and the files that it names. */
export function openTo(servers: Record<string, WebServer>) {
  const named = Object.entries(servers);
  const reach = (name: string) => ({ ca: { file: `${name}.pem` }, privateNetworks: LOOPBACK });
  return {
    clientOrigins: Object.fromEntries(named.map(([name, { origin }]) => [origin, reach(name)])),
    files: Object.fromEntries(named.map(([name, { ca }]) => [`${name}.pem`, ca])),
  };
}

// --- keys and assertions ------------------------------------------------------------------------------------------

export type Key = { pem: string; jwk: { kid: string; [member: string]: string } };

export async function makeKey(kid: string): Promise<Key> {
  const pem = await makeKeyPem();
  return { pem, jwk: { kid, ...publicJwk(pem) } };
}

const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** A form that authenticates this client by this key; `claims` and `header` are others than the usual. */
export function bearer(clientId: string, { pem, jwk: { kid } }: Key, claims = {}, header = {}): Form {
  const seconds = Math.floor(Date.now() / 1000);
  const usual = { iss: clientId, sub: clientId, aud: ISSUER, iat: seconds, exp: seconds + 60 };
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const parts = [
    { alg: "ES256", kid, ...header },
    { ...usual, jti: randomUUID(), ...claims },
  ];
  const input = parts.map(encode).join(".");
  const key = { key: createPrivateKey(pem), dsaEncoding: "ieee-p1363" } as const;
  const signature = sign("sha256", Buffer.from(input), key).toString("base64url");
  return { client_assertion_type: JWT_BEARER, client_assertion: `${input}.${signature}` };
}
