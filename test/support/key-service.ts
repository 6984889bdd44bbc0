/** A key service by the interface of src/adapters/crypto/README.md: the reference with which the tests sign. */
import { generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { startWebServer, type WebServer } from "./web.ts";

type Answer = Readonly<Record<string, unknown>>;

export type KeyService = WebServer & {
  /** The value of the header field `Authorization` without which it answers nothing. */
  authorization: string;
  /** The paths that were asked for. */
  asked: string[];
  /** Changes its answers from now on. */
  bend(how: (answer: Answer) => Answer): void;
};

const PAIRS: Record<string, () => { publicKey: KeyObject; privateKey: KeyObject }> = {
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
};

export async function startKeyService(): Promise<KeyService> {
  const authorization = "Bearer key-service-key-service-12345678";
  const keys = new Map<string, KeyObject>();
  const asked: string[] = [];
  let bent = (answer: Answer): Answer => answer;
  const make = (alg: string): Answer | undefined => {
    const pair = PAIRS[alg]?.();
    if (pair === undefined) return undefined;
    const id = randomUUID();
    keys.set(id, pair.privateKey);
    return { id, jwk: pair.publicKey.export({ format: "jwk" }) };
  };
  const signBy = (id: string, alg: string, input: string): Answer | undefined => {
    const key = keys.get(id);
    if (key === undefined) return undefined;
    // RFC 7518 3.4: R and S, and not as DER.
    const by = { key, dsaEncoding: "ieee-p1363" } as const;
    const signature = sign(alg === "EdDSA" ? null : "sha256", Buffer.from(input, "base64url"), by);
    return { signature: signature.toString("base64url") };
  };
  const server = await startWebServer(async (request) => {
    const { pathname } = new URL(request.url);
    asked.push(pathname);
    if (request.headers.get("authorization") !== authorization) return new Response(null, { status: 401 });
    const { alg = "", id = "", input = "" } = (await request.json()) as Record<string, string>;
    const answer = pathname === "/v1/keys" ? make(alg) : signBy(id, alg, input);
    return answer === undefined ? new Response(null, { status: 404 }) : Response.json(bent(answer));
  });
  return {
    ...server,
    authorization,
    asked,
    bend(how) {
      bent = how;
    },
  };
}
