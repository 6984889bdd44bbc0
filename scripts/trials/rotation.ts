/**
 * Others begin to sign with a new key at once, and publish it at that moment: which requests are refused, how long the
 * slowest one takes, and how often the new keys are fetched.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { EARLY_LOOK_SECONDS } from "../../src/limits/fetching.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { bearer, type Key, makeKey } from "../../test/support/documents.ts";
import { type DocumentServer, LOOPBACK, startDocumentServer } from "../../test/support/web.ts";
import { JWT_SPIFFE } from "../../test/support/world.ts";
import { bundle, makeKeyPem, mintJwtSvid } from "../dev-keys.ts";
import { makeTrustDomain, mintX509Svid } from "../dev-pki.ts";
import { type Form, postForm, type Sent } from "../http-client.ts";
import { startServer } from "../server-process.ts";
import { makeProduction } from "./production.ts";

const API = "https://api.example";
const IDP = "https://idp.example";
/** Few enough that all that wait for a look are below the limit of connections of one address. */
const PAUSE_MS = 100;

export type RotationOutcome = {
  /** Whose keys. */
  kind: string;
  rotations: number;
  requests: number;
  refused: number;
  slowestMs: number;
  fetches: number;
  /** Tokens with keys that are not published, sent meanwhile. */
  forged: number;
};

/** A request that the server accepts if it knows the newest key. */
type Proof = { form: Form; certificate?: Pick<Sent, "key" | "cert"> };

type Owner = {
  kind: string;
  path: string;
  /** Publishes a new key; what follows is signed with it. */
  rotate(): Promise<void>;
  proof(issuer: string): Promise<Proof>;
  /** Signed with a key that is not published. */
  forged(issuer: string): Promise<Proof>;
};

/** An issuer that vouches for a client, or a client that publishes its own keys. */
function ownerOfKeys(kind: string, path: string, at: DocumentServer, name: string, claims: object): Owner {
  let current: Key | undefined;
  const by = (key: Key, issuer: string): Proof => ({ form: bearer(name, key, { aud: issuer, ...claims }) });
  const owner: Owner = {
    kind,
    path,
    async rotate() {
      current = await makeKey(randomUUID());
      at.documents.set(path, { keys: [current.jwk] });
    },
    async proof(issuer) {
      if (current === undefined) await owner.rotate();
      return current === undefined ? { form: {} } : by(current, issuer);
    },
    forged: async (issuer) => by(await makeKey(randomUUID()), issuer),
  };
  return owner;
}

/** A trust domain whose workloads authenticate by JWT-SVID or by X.509-SVID. */
async function ownerOfBundle(path: string, at: DocumentServer, by: "jwt" | "x509"): Promise<Owner> {
  const name = `${by}.example`;
  const sub = `spiffe://${name}/one`;
  let current = await makeTrustDomain(name);
  let sequence = 0;
  const proofOf = async (domain: typeof current, issuer: string): Promise<Proof> => {
    if (by === "jwt") {
      const client_assertion = await mintJwtSvid(domain, { sub, aud: issuer });
      return { form: { client_assertion_type: JWT_SPIFFE, client_assertion } };
    }
    const { keyPem, chainPem } = await mintX509Svid(domain, sub);
    return { form: {}, certificate: { key: keyPem, cert: chainPem } };
  };
  return {
    kind: by === "jwt" ? "bundle, JWT-SVID" : "bundle, X.509-SVID",
    path,
    async rotate() {
      current = await makeTrustDomain(name);
      at.documents.set(path, { ...bundle(current), spiffe_sequence: ++sequence });
    },
    proof: (issuer) => proofOf(current, issuer),
    async forged(issuer) {
      const jwt = { kid: randomUUID(), keyPem: await makeKeyPem() };
      return proofOf(by === "jwt" ? { ...current, jwt } : await makeTrustDomain(name), issuer);
    },
  };
}

const openOwners = async (at: DocumentServer): Promise<readonly Owner[]> => [
  ownerOfKeys("issuer", "/issuer", at, IDP, { sub: "job" }),
  ownerOfKeys("client's jwks_uri", "/client", at, "keyed", {}),
  await ownerOfBundle("/jwt", at, "jwt"),
  await ownerOfBundle("/x509", at, "x509"),
];

function configure(at: DocumentServer): object {
  const place = (path: string) => ({
    url: `${at.origin}${path}`,
    ca: { file: "others.pem" },
    privateNetworks: LOOPBACK,
  });
  const rule = { allow: "client_credentials", targets: [API], scopes: ["read"] };
  return {
    trustDomains: {
      "jwt.example": { bundle: place("/jwt") },
      "x509.example": { bundle: place("/x509") },
    },
    trustedIssuers: {
      [IDP]: { keys: place("/issuer"), subjects: "keep", acceptAs: [], vouches: {} },
    },
    clients: {
      keyed: { method: "private_key_jwt", jwksUri: place("/client") },
      job: { method: "private_key_jwt", vouchedBy: [{ issuer: IDP, claims: { sub: "job" } }] },
    },
    targets: [{ names: [API], scopes: ["read"] }],
    policies: [
      { ...rule, id: "clients", clients: ["keyed", "job"] },
      { ...rule, id: "workloads", actors: ["spiffe://jwt.example/*", "spiffe://x509.example/*"] },
    ],
    limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    drafts: [SPIFFE_DRAFT],
  };
}

/**
 * All owners at the same time, so many times each, at once after the server has fetched their keys; in between requests
 * are sent for so many seconds. `underAttack`: each owner's name is used for forged tokens with unknown keys, too.
 */
export async function rotateKeys(
  rotations: number,
  seconds: number,
  underAttack: boolean,
): Promise<readonly RotationOutcome[]> {
  const others = await startDocumentServer();
  const owners = await openOwners(others);
  for (const owner of owners) await owner.rotate();
  const production = await makeProduction(configure(others));
  writeFileSync(join(production.folder, "others.pem"), others.ca);
  const { issuer } = JSON.parse(readFileSync(production.configFile, "utf8"));
  const ca = readFileSync(join(production.folder, "tls/ca.pem"), "utf8");
  const server = await startServer(production.configFile);
  const send = async ({ form, certificate = {} }: Proof): Promise<number> => {
    const whole = { grant_type: "client_credentials", audience: API, ...form };
    // A connection that is lost counts as a refusal.
    const answer = postForm(`${issuer}/token`, whole, { ca, ...certificate });
    return answer.then(
      ({ status }) => status,
      () => 0,
    );
  };
  const watch = async (owner: Owner): Promise<RotationOutcome> => {
    const fetched = (): number => others.fetched.filter((path) => path === owner.path).length;
    if ((await send(await owner.proof(issuer))) !== 200)
      throw new Error(`${owner.kind}: refused at the start`);
    const before = fetched();
    const answers: Promise<{ status: number; ms: number }>[] = [];
    const forged: Promise<unknown>[] = [];
    const timed = async (proof: Proof) => {
      const startMs = performance.now();
      return { status: await send(proof), ms: performance.now() - startMs };
    };
    for (let rotation = 0; rotation < rotations; rotation++) {
      await owner.rotate();
      const ofThis: typeof answers = [];
      for (
        const endMs = performance.now() + seconds * 1000;
        performance.now() < endMs;
        await sleep(PAUSE_MS)
      ) {
        ofThis.push(timed(await owner.proof(issuer)));
        if (underAttack) forged.push(send(await owner.forged(issuer)));
      }
      // The next key replaces this one, with which all of these are to be verified.
      await Promise.all(ofThis);
      answers.push(...ofThis);
    }
    const fetches = fetched() - before;
    const all = await Promise.all(answers);
    await Promise.all(forged);
    return {
      kind: owner.kind,
      rotations,
      requests: all.length,
      refused: all.filter(({ status }) => status !== 200).length,
      slowestMs: Math.round(Math.max(...all.map(({ ms }) => ms))),
      fetches,
      forged: forged.length,
    };
  };
  try {
    return await Promise.all(owners.map(watch));
  } finally {
    await server.stop();
    production.remove();
    await others.stop();
  }
}

const ROTATIONS = 3;
const SECONDS = 2;

/** A line for each owner of keys, without and with forged tokens. */
export async function runRotation(rounds: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const underAttack of [false, true]) {
      for (const outcome of await rotateKeys(ROTATIONS, SECONDS, underAttack)) lines.push(describe(outcome));
    }
  }
  return lines;
}

function describe({
  kind,
  rotations,
  requests,
  refused,
  slowestMs,
  fetches,
  forged,
}: RotationOutcome): string {
  const beside = forged > 0 ? `, beside ${forged} forged ones` : "";
  const looked = `${fetches} fetches, one in ${EARLY_LOOK_SECONDS} s at most`;
  return `${kind}: ${refused} of ${requests} refused in ${rotations} rotations${beside}, ${slowestMs} ms at most, ${looked}`;
}
