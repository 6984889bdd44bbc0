/** A server as programs written for clouds meet it: a platform's token in a file, and the credential file that names it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { makePlatform } from "./platforms.ts";
import { JWT, makeWorld, type World } from "./world.ts";

const API = "https://api.example";

export type CloudWorld = World & {
  /** The environment of a program that trusts the server: of Node, and of Python. */
  env: Record<string, string>;
  /** Writes a new token for the workload, and returns the path of the credential file that names it. */
  credentials(subject: string): string;
};

/** The tokens of `pod/…` may be sent again until they end, those of `job/…` once. */
export async function makeCloudWorld(): Promise<CloudWorld> {
  const platform = makePlatform("https://cloud.example");
  const dedicated = { tenancy: "dedicated" };
  const world = await makeWorld(
    {
      trustedIssuers: {
        [platform.issuer]: {
          keys: { file: "cloud.json" },
          workloads: {
            pods: { ...dedicated, subjects: ["pod/*"], reusable: true },
            jobs: { ...dedicated, subjects: ["job/*"] },
          },
        },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "own",
          allow: "client_credentials",
          actors: ["platform://pods/*", "platform://jobs/*"],
          targets: [API],
          scopes: ["read"],
          lifetimeSeconds: 900,
        },
      ],
      drafts: [SPIFFE_DRAFT, DRAFT],
    },
    { files: { "cloud.json": platform.jwks } },
  );
  const ca = join(world.folder, "tls/ca.pem");
  return {
    ...world,
    env: { NODE_EXTRA_CA_CERTS: ca, REQUESTS_CA_BUNDLE: ca },
    credentials(subject) {
      const file = join(world.folder, "projected");
      writeFileSync(file, `${platform.token({ sub: subject })}\n`);
      const path = join(world.folder, "credentials.json");
      const credentials = {
        type: "external_account",
        audience: API,
        subject_token_type: JWT,
        token_url: `https://localhost:${world.server.port}/token`,
        credential_source: { file },
      };
      writeFileSync(path, JSON.stringify(credentials));
      return path;
    },
  };
}
