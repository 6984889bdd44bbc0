/**
 * What surrounds the server while it is tested: a provider of users, a partner, a platform of workloads, a trust domain,
 * clients with their keys, metadata documents and a receiver of security events. One HTTPS server on loopback serves all
 * of them; an adapter tells the server under test about them.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Authority,
  type Identity,
  makeAuthority,
  makeCertificate,
  publicJwkOf,
} from "./certificates.ts";
import { type Json, type Key, makeKey, randomId } from "./keys.ts";
import type { Client, Names, Role } from "./parties.ts";

export const TRUST_DOMAIN = "suite.example";
export const spiffeId = (role: string): string => `spiffe://${TRUST_DOMAIN}/${role}`;

/** An issuer that the suite is: it signs with `key`, which is published at `jwksUri`. */
export type Issuer = { issuer: string; jwksUri: string; key: Key; metadata: Json };

/** What a URL of the suite answers; a function is asked at each request. */
export type Page = { status?: number; type?: string; body: string; location?: string; cache?: string };

/** The users for whom agents may act; `eve` is none of them. */
export const USERS = ["alice", "bob", "carol", "dave", "erin", "frank"] as const;

export type Scene = {
  origin: string;
  folder: string;
  /** PEM of the authority of the suite's own server, which may also certify the server under test. */
  ca: string;
  authority: Authority;
  /** A certificate for localhost and 127.0.0.1. */
  server: Identity;
  idp: Issuer;
  partner: Issuer;
  platform: Issuer;
  /** One that the server under test is not told of. */
  untrusted: Issuer;
  trustDomain: { name: string; bundle: Json; key: Key; authority: Authority };
  clients: Record<Role, Client>;
  names: Names;
  pages: Map<string, Page>;
  /** Where the server sends security events about tokens for `api`, and what came. */
  receiver: {
    url: string;
    audience: string;
    authorization: string;
    got: { body: string; authorization: string }[];
  };
  /** The JWK Set of a client with `key`, or with its certificate. */
  jwksOf(client: Client): { keys: Json[] };
  /** Writes a file into the folder, and returns its full name. */
  write(name: string, content: string | object): string;
  freePort(): Promise<number>;
  close(): Promise<void>;
};

export async function makeScene(): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), "suite-"));
  const authority = makeAuthority("Authority of the suite");
  const server = makeCertificate("localhost", { dns: ["localhost"], ips: ["127.0.0.1"] }, authority, {
    usage: "server",
  });
  const pages = new Map<string, Page>();
  const got: Scene["receiver"]["got"] = [];
  const web = createServer({ key: server.key, cert: server.cert }, async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString("utf8");
    const path = request.url ?? "/";
    if (request.method === "POST" && path === "/events") {
      got.push({ body, authorization: request.headers.authorization ?? "" });
      return response.writeHead(202).end();
    }
    const page = pages.get(path);
    if (page === undefined) return response.writeHead(404).end();
    const { status = 200, type = "application/json", location, cache = "no-store" } = page;
    const headers = {
      "content-type": type,
      "cache-control": cache,
      ...(location !== undefined && { location }),
    };
    // In parts, so that a reader learns the length by reading.
    response.writeHead(status, headers).write(page.body);
    return response.end();
  });
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
  const address = web.address();
  const origin = `https://localhost:${typeof address === "object" ? address?.port : 0}`;

  const makeIssuer = (name: string): Issuer => {
    const [issuer, jwksUri, key] = [`${origin}/${name}`, `${origin}/${name}/jwks`, makeKey(`${name}-1`)];
    const metadata = {
      ...{
        issuer,
        jwks_uri: jwksUri,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
      },
      ...{ authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
      ...{
        id_token_signing_alg_values_supported: ["ES256", "RS256"],
        code_challenge_methods_supported: ["S256"],
      },
    };
    pages.set(`/${name}/jwks`, { body: JSON.stringify({ keys: [key.jwk] }) });
    for (const path of [
      `/${name}/.well-known/openid-configuration`,
      `/.well-known/openid-configuration/${name}`,
      `/.well-known/oauth-authorization-server/${name}`,
    ])
      pages.set(path, { body: JSON.stringify(metadata) });
    return { issuer, jwksUri, key, metadata };
  };

  const svidKey = makeKey("svid-1");
  const anchor = makeAuthority("Authority of the trust domain", [`spiffe://${TRUST_DOMAIN}`]);
  const { use: _use, alg: _alg, ...svidJwk } = svidKey.jwk;
  const anchorJwk = { ...publicJwkOf(anchor), use: "x509-svid", x5c: [anchor.der.toString("base64")] };
  const bundle = {
    ...{ spiffe_sequence: 1, spiffe_refresh_hint: 300 },
    keys: [anchorJwk, { ...svidJwk, use: "jwt-svid" }],
  };

  const bySecret = (role: string): Client => ({
    ...{ id: `suite-${role}`, method: "client_secret_basic" },
    secret: `${randomId()}${randomId()}`,
  });
  const byTls = (role: string, method: "tls_client_auth" | "self_signed_tls_client_auth"): Client => {
    const issuer = method === "tls_client_auth" ? authority : undefined;
    const identity = makeCertificate(`suite-${role}`, { dns: [`${role}.suite.example`] }, issuer, {
      usage: "client",
    });
    return { id: `suite-${role}`, method, identity };
  };
  const byOwnKey = (role: string): Client => ({
    ...{ id: `suite-${role}`, method: "private_key_jwt", key: makeKey(`${role}-1`) },
  });
  const bySvid = (role: string): Client => ({ id: spiffeId(role), method: "spiffe_jwt" });

  return {
    ...{ origin, folder, ca: authority.cert, authority, server, pages },
    idp: makeIssuer("idp"),
    partner: makeIssuer("partner"),
    platform: makeIssuer("platform"),
    untrusted: makeIssuer("untrusted"),
    trustDomain: { name: TRUST_DOMAIN, bundle, key: svidKey, authority: anchor },
    clients: {
      machine: bySecret("machine"),
      second: { ...bySecret("second"), method: "client_secret_post" },
      signer: byOwnKey("signer"),
      pki: byTls("pki", "tls_client_auth"),
      pinned: byTls("pinned", "self_signed_tls_client_auth"),
      planner: bySvid("planner"),
      booking: bySvid("booking"),
      crew: bySvid("crew"),
      outsider: bySvid("outsider"),
      gate: bySecret("gate"),
      elsewhere: bySecret("elsewhere"),
      guest: bySecret("guest"),
      clerk: bySecret("clerk"),
      asker: bySvid("asker"),
    },
    names: {
      ...{ api: "https://api.suite.example", other: "https://other.suite.example" },
      ...{ booking: "https://booking.suite.example", crew: "https://crew.suite.example" },
      ...{ bound: "https://bound.suite.example", ledger: "https://ledger.suite.example" },
      ...{
        partner: `${origin}/partner`,
        read: "read",
        write: "write",
        detail: "https://ledger.suite.example/payment",
      },
    },
    receiver: {
      url: `${origin}/events`,
      audience: "https://api.suite.example",
      authorization: `Bearer ${randomId()}`,
      got,
    },
    jwksOf({ key, identity }) {
      if (key !== undefined) return { keys: [key.jwk] };
      if (identity === undefined) return { keys: [] };
      return { keys: [{ ...publicJwkOf(identity), x5c: [identity.der.toString("base64")] }] };
    },
    write(name, content) {
      const file = join(folder, name);
      writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content), { mode: 0o600 });
      return file;
    },
    freePort,
    async close() {
      web.closeAllConnections();
      await new Promise((resolve) => web.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function freePort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const probe = createTcpServer();
  probe.on("error", reject);
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address();
    probe.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
  });
  return promise;
}
