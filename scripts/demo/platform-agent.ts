/** A platform that signs a JWT for its agent, as a company trusts it: by a file with its key. */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";

const PLATFORM = "https://acme.agents.example";
const SUB = "agent/7f3d";

export type PlatformAgent = {
  /** Its name at the company. */
  id: string;
  /** The entry of `trustedIssuers`. */
  trusted: object;
  /** A token for the company, good for a minute and for one request. */
  token(): Promise<string>;
};

export async function makePlatformAgent(folder: string, company: string): Promise<PlatformAgent> {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const key = { ...(await exportJWK(publicKey)), kid: "p1", alg: "ES256" };
  writeFileSync(join(folder, "platform.json"), JSON.stringify({ keys: [key] }));
  const workloads = { acme: { tenancy: "dedicated", subjects: ["agent/*"], uses: ["client", "actor"] } };
  return {
    id: `platform://acme/${encodeURIComponent(SUB)}`,
    trusted: { [PLATFORM]: { keys: { file: "platform.json" }, workloads } },
    token: () =>
      new SignJWT({ jti: randomUUID() })
        .setProtectedHeader({ alg: "ES256", kid: "p1" })
        .setIssuer(PLATFORM)
        .setSubject(SUB)
        .setAudience(company)
        .setIssuedAt()
        .setExpirationTime("1m")
        .sign(privateKey),
  };
}
