/**
 * A resource server that shares no code with ours: it verifies DPoP-bound and unbound tokens by `oauth4webapi`, and
 * those that are bound to a certificate, which that library does not know, by `jose` and by the connection.
 */
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { createLocalJWKSet, decodeJwt, jwtVerify } from "jose";
import * as oauth from "oauth4webapi";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import type { Fetch } from "./web.ts";

export type ResourceServer = {
  /** Its audience, and where it is. */
  origin: string;
  /** PEM of its own authority. */
  ca: string;
  /** From now on it takes tokens of this server, whose keys it fetches by this transport. */
  trust(server: oauth.AuthorizationServer, transport: { [oauth.customFetch]: Fetch }): void;
  stop(): Promise<void>;
};

/** The thumbprint of the certificate in the handshake, from the hexadecimal text that the platform makes of it. */
const thumbprintOf = (socket: TLSSocket): string | undefined => {
  const hex = socket.getPeerX509Certificate()?.fingerprint256.replaceAll(":", "");
  return hex && Buffer.from(hex, "hex").toString("base64url");
};

type Trusted = { issuer: oauth.AuthorizationServer; transport: { [oauth.customFetch]: Fetch } };

/** Throws for any other certificate than the one that the token is bound to. */
async function verifyByCertificate(
  { issuer, transport }: Trusted,
  token: string,
  audience: string,
  socket: TLSSocket,
): Promise<object> {
  const fetched = await transport[oauth.customFetch](String(issuer.jwks_uri));
  const keys = createLocalJWKSet((await fetched.json()) as Parameters<typeof createLocalJWKSet>[0]);
  const { payload } = await jwtVerify(token, keys, { issuer: issuer.issuer, audience, typ: "at+jwt" });
  const { "x5t#S256": bound } = payload.cnf as Record<string, unknown>;
  if (bound !== thumbprintOf(socket)) throw new Error("the token is bound to another certificate");
  return payload;
}

export async function startResourceServer(): Promise<ResourceServer> {
  const authority = await makeAuthority("Authority of a resource server");
  const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost"]);
  const tls = { key: keyPem, cert: certPem, requestCert: true, rejectUnauthorized: false };
  let origin = "";
  let trusted: Trusted | undefined;
  const server = createServer(tls, async (incoming, outgoing) => {
    const { method = "GET", url = "/" } = incoming;
    const headers = Object.entries(incoming.headers).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]);
    try {
      if (trusted === undefined) throw new Error("it trusts no server yet");
      const request = new Request(`${origin}${url}`, { method, headers });
      const token = /^Bearer (.+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
      const { cnf = {} } = (token === undefined ? {} : decodeJwt(token)) as { cnf?: Record<string, unknown> };
      const claims =
        token !== undefined && "x5t#S256" in cnf
          ? await verifyByCertificate(trusted, token, origin, incoming.socket as TLSSocket)
          : await oauth.validateJwtAccessToken(trusted.issuer, request, origin, trusted.transport);
      outgoing.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(claims));
    } catch (error) {
      outgoing.writeHead(401, { "www-authenticate": 'Bearer error="invalid_token"' }).end(String(error));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `https://localhost:${(server.address() as AddressInfo).port}`;
  return {
    get origin() {
      return origin;
    },
    ca: authority.certPem,
    trust(issuer, transport) {
      trusted = { issuer, transport };
    },
    async stop() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
