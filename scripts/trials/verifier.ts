/** A resource server's check of our tokens by a library that we did not write (jose). */
import { createRemoteJWKSet, customFetch, jwtVerify } from "jose";
import { type Answer, send } from "../http-client.ts";

/** Where the key set is: the same at each of these ports of this machine. */
export type Publisher = { issuer: string; ca: string; ports: readonly number[] };

export type Verifier = {
  /** The key that signed the token, if that is good. */
  verify(token: string): Promise<string>;
  /** How often the key set was fetched. */
  fetches(): number;
};

/**
 * Verifies with the key set that it has, for as long as the header of that said, and not a moment longer or shorter. It
 * fetches at one instance after another, beginning with this one; at the next where one does not answer.
 */
export async function makeVerifier({ issuer, ca, ports }: Publisher, first: number): Promise<Verifier> {
  let [turn, fetches] = [first, 0];
  const fetchSet = async (): Promise<Answer> => {
    fetches++;
    for (let tries = 1; ; tries++) {
      const port = ports[turn++ % ports.length] ?? 0;
      try {
        return await send(`${issuer}/jwks`, { ca, connect: { host: "127.0.0.1", port } });
      } catch (fault) {
        if (tries === ports.length) throw fault;
      }
    }
  };
  const { headers } = await fetchSet();
  const maxAgeMs = 1_000 * Number(/max-age=(\d+)/.exec(headers["cache-control"] ?? "")?.[1]);
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`), {
    cacheMaxAge: maxAgeMs,
    // A key that is unknown is not looked for before.
    cooldownDuration: maxAgeMs,
    [customFetch]: async () => {
      const { status, text } = await fetchSet();
      return new Response(text, { status, headers: { "content-type": "application/jwk-set+json" } });
    },
  });
  return {
    async verify(token) {
      const { protectedHeader } = await jwtVerify(token, keys, { issuer, typ: "at+jwt" });
      return protectedHeader.kid ?? "";
    },
    fetches: () => fetches,
  };
}
