/**
 * Project Wycheproof's vectors for the signatures that this server verifies, and its JWS, through our own verifier and key
 * parser: each is taken or refused as its authors say.
 */
import { spawnSync } from "node:child_process";
import { createPublicKey } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifier } from "../../src/adapters/crypto/verifier.ts";
import { decodeBase64url, type Jws } from "../../src/spec/rfc7515.ts";
import { parseJwk } from "../../src/spec/rfc7517.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { missing } from "./spring.ts";

const MODULE = "github.com/c2sp/wycheproof@v0.0.0-20260902155932-3fa63dd0344a";

/** By file, the algorithm of its vectors here; their keys are RSA keys of 2048 to 4096 bits where there are several sizes. */
const FILES: Readonly<Record<string, string>> = {
  ecdsa_secp256r1_sha256_p1363: "ES256",
  ecdsa_secp384r1_sha384_p1363: "ES384",
  ecdsa_secp521r1_sha512_p1363: "ES512",
  ed25519: "EdDSA",
  ...Object.fromEntries(
    [2048, 3072, 4096].flatMap((bits) =>
      [256, 384, 512].map((digest) => [`rsa_signature_${bits}_sha${digest}`, `RS${digest}`]),
    ),
  ),
  rsa_pss_2048_sha256_mgf1_32: "PS256",
  rsa_pss_3072_sha256_mgf1_32: "PS256",
  rsa_pss_4096_sha256_mgf1_32: "PS256",
  rsa_pss_2048_sha384_mgf1_48: "PS384",
  rsa_pss_4096_sha384_mgf1_48: "PS384",
  rsa_pss_4096_sha512_mgf1_64: "PS512",
};

/**
 * What counts as valid there and is refused here: RSA keys with a public exponent below 65537 (flag SmallPublicKey), and
 * these JWS, whose key is for PS256 or "ES521" and whose header says PS384 or ES512.
 */
const OTHER_ALGORITHM = ["Figure20", "Figure27"];

type Vector = {
  tcId: number;
  comment: string;
  flags: readonly string[];
  result: "valid" | "invalid" | "acceptable";
};
type Group<V> = { publicKeyPem: string; private?: JsonObject; public?: JsonObject; tests: (Vector & V)[] };

function isTaken(key: JsonObject, jws: Pick<Jws, "header" | "signingInput" | "signature">): boolean {
  const jwk = parseJwk(key);
  return jwk.ok && verifier.verify(jws as Jws, jwk.value);
}

/** A signature over bytes, as if they were the text of a token. */
function verifySignature(alg: string, pem: string, { msg, sig }: { msg: string; sig: string }): boolean {
  const key = createPublicKey(pem).export({ format: "jwk" }) as JsonObject;
  const signingInput = Buffer.from(msg, "hex") as unknown as string;
  return isTaken(key, { header: { alg } as Jws["header"], signingInput, signature: Buffer.from(sig, "hex") });
}

/** A compact JWS whose payload need be no claims. */
function verifyText(key: JsonObject, text: unknown): boolean {
  const [head = "", payload = "", end = "", ...more] = typeof text === "string" ? text.split(".") : [];
  const [header, body, signature] = [head, payload, end].map(decodeBase64url);
  if (!header || !body || !signature || more.length > 0) return false;
  try {
    const { alg } = JSON.parse(Buffer.from(header).toString());
    return isTaken(key, { header: { alg } as Jws["header"], signingInput: `${head}.${payload}`, signature });
  } catch {
    return false;
  }
}

class Counts {
  taken = 0;
  refused = 0;
  readonly wrong: string[] = [];
  add(name: string, { result, tcId, comment, flags }: Vector, taken: boolean): void {
    if (taken) this.taken++;
    else this.refused++;
    const isGood =
      result === "valid" && !flags.includes("SmallPublicKey") && !OTHER_ALGORITHM.includes(comment);
    if (result !== "acceptable" && taken !== isGood)
      this.wrong.push(`${name} ${tcId} (${comment}) is ${result}`);
  }
  told(what: string): string {
    if (this.wrong.length > 0) throw new Error(`${what}: ${this.wrong.slice(0, 20).join("; ")}`);
    return `${what}: ${this.taken} taken, ${this.refused} refused, as they should be`;
  }
}

export async function* runWycheproof(): AsyncIterable<string> {
  if (missing("go").length > 0) {
    yield "not run here: there is no go";
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "wycheproof-"));
  try {
    const env = { ...process.env, GOMODCACHE: folder, GOFLAGS: "-modcacherw" };
    const { stdout } = spawnSync("go", ["mod", "download", "-json", MODULE], {
      cwd: folder,
      encoding: "utf8",
      env,
    });
    const { Dir: root, Error: fault } = JSON.parse(stdout);
    if (fault !== undefined) throw new Error(fault);
    const groupsOf = <V>(name: string): Group<V>[] =>
      JSON.parse(readFileSync(join(root, "testvectors_v1", `${name}_test.json`), "utf8")).testGroups;
    const counts = new Map<string, Counts>();
    for (const [name, alg] of Object.entries(FILES))
      for (const { publicKeyPem, tests } of groupsOf<{ msg: string; sig: string }>(name))
        for (const one of tests)
          counts
            .getOrInsertComputed(alg, () => new Counts())
            .add(name, one, verifySignature(alg, publicKeyPem, one));
    for (const [alg, one] of counts) yield one.told(alg);
    const texts = new Counts();
    // Those without a public key are MACs, which this server makes no use of.
    for (const { public: key, tests } of groupsOf<{ jws: unknown }>("json_web_signature"))
      if (key !== undefined) for (const one of tests) texts.add("JWS", one, verifyText(key, one.jws));
    yield texts.told("JWS with public keys");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
