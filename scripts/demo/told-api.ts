/** The API of the demo that verifies tokens by itself, and is told by the server which of them were ended. */
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createLocalJWKSet, jwtVerify } from "jose";
import { listen } from "../../src/http/listen.ts";
import { send } from "../http-client.ts";

const REVOKED = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";

export type ToldApi = {
  /** Whether it accepts the token; it asks no server. */
  accepts(token: unknown): Promise<boolean>;
  close(): void;
};

/** The stream of the server's configuration that tells this API. */
export const streamTo = (audience: string, port: number) => ({
  audience,
  targets: [audience],
  url: `https://localhost:${port}/events`,
  ca: { file: "tls/ca.pem" },
  privateNetworks: ["127.0.0.0/8", "::1/128"],
});

export async function openToldApi(
  folder: string,
  issuer: string,
  audience: string,
  port: number,
): Promise<ToldApi> {
  const file = (name: string): string => readFileSync(join(folder, "tls", name), "utf8");
  const tokens = new Set<unknown>();
  const subjects = new Map<unknown, number>();

  const verify = async (jwt: string, typ: string) => {
    const { body } = await send(`${issuer}/jwks`, { ca: file("ca.pem") });
    const keys = createLocalJWKSet(body as unknown as Parameters<typeof createLocalJWKSet>[0]);
    return (await jwtVerify(jwt, keys, { typ, issuer, audience })).payload;
  };
  const note = async (event: string): Promise<void> => {
    const { sub_id, events } = await verify(event, "secevent+jwt");
    const { jti, sub } = sub_id as Record<string, unknown>;
    const revoked = (events as Record<string, { mandate_cutoff?: number }>)[REVOKED];
    if (revoked === undefined) return;
    if (jti !== undefined) tokens.add(jti);
    else subjects.set(sub, Math.max(revoked.mandate_cutoff ?? 0, subjects.get(sub) ?? 0));
  };
  const tls = { key: file("key.pem"), cert: file("cert.pem") };
  const server = createServer(tls, async (request, response) => {
    const status = await note(await text(request)).then(
      () => 202,
      () => 400,
    );
    response.writeHead(status).end();
  });
  await listen(server, { host: "127.0.0.1", port });
  return {
    async accepts(token) {
      const { jti, sub, iat = 0 } = await verify(String(token), "at+jwt");
      return !tokens.has(jti) && iat > (subjects.get(sub) ?? 0);
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
