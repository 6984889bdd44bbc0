/** The server of the database is verified: by the authority in sslrootcert, and by its name or address. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Authority } from "../../../../scripts/dev-keys.ts";
import { issueServerCertificate, makeAuthority } from "../../../../scripts/dev-pki.ts";
import { openStore } from "../../../../src/adapters/store/open.ts";
import { makeReader } from "../../../../src/config/reader.ts";
import type { ConfigFile } from "../../../../src/config/schema.ts";
import { readStore } from "../../../../src/config/store.ts";
import { type Postgres, startPostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";

let folder: string;
let authority: Authority;
let server: Postgres;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate tls "));
  authority = await makeAuthority("of the database");
  writeFileSync(join(folder, "ca.pem"), authority.certPem);
  writeFileSync(join(folder, "other.pem"), (await makeAuthority("another one")).certPem);
  const { keyPem, certPem } = await issueServerCertificate(authority, ["127.0.0.1", "database.example"]);
  server = await startPostgres({ tls: { key: keyPem, cert: certPem } });
});
after(() => stop(server, () => rmSync(folder, { recursive: true })));

/** The place that the configuration names, and what it says about it. */
function read(parameters: string, host = "127.0.0.1") {
  const url = new URL(server.url);
  url.hostname = host;
  writeFileSync(join(folder, "url"), `${url}${parameters}`);
  const reader = makeReader(folder, true);
  const config = { store: { postgres: { file: "url" }, connections: 2 }, profile: "production" };
  const place = readStore(config as unknown as ConfigFile, folder, reader);
  return { place, problems: reader.problems, warnings: reader.warnings };
}

async function open(parameters: string, host?: string): Promise<string> {
  const { place, problems } = read(parameters, host);
  assert.deepEqual(problems, []);
  return openStore(place).then(
    async (store) => {
      await store.log.logs();
      await store.close();
      return "opened";
    },
    (fault: Error) => fault.message,
  );
}

test("verify-full with the authority in sslrootcert is connected to, by the address in the certificate", async () => {
  assert.equal(await open("?sslmode=verify-full&sslrootcert=ca.pem"), "opened");
  assert.equal(await open("?sslrootcert=ca.pem"), "opened");
});

const refused: readonly (readonly [
  what: string,
  parameters: string,
  host: string | undefined,
  says: RegExp,
])[] = [
  [
    "another authority",
    "?sslmode=verify-full&sslrootcert=other.pem",
    undefined,
    /SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY/,
  ],
  ["no authority of its own", "?sslmode=verify-full", undefined, /UNABLE_TO_VERIFY|SELF_SIGNED/],
  [
    "a name that is not in the certificate",
    "?sslrootcert=ca.pem",
    "localhost",
    /ERR_TLS_CERT_ALTNAME_INVALID.*for another host/,
  ],
];
for (const [what, parameters, host, says] of refused) {
  test(`with ${what} nothing is sent to the server, and the message says why`, async () => {
    assert.match(await open(parameters, host), says);
  });
}

test("sslrootcert beside a mode that verifies nothing, or of no certificates, is a problem; no verification is warned of", () => {
  assert.match(
    read("?sslmode=prefer&sslrootcert=ca.pem").problems[0] ?? "",
    /beside sslmode=prefer: use sslmode=verify-full$/,
  );
  assert.match(
    read("?sslrootcert=url").problems[0] ?? "",
    /^store\.postgres\.sslrootcert\.file: url has no certificates/,
  );
  const far = "database.example";
  assert.match(read("", far).warnings[0] ?? "", /is not verified, .*: add sslmode=verify-full/);
  assert.match(read("?sslmode=require", far).warnings[0] ?? "", /is not verified/);
  assert.deepEqual(read("?sslmode=verify-full", far).warnings, []);
  assert.deepEqual(read("").warnings, [], "of this machine");
});
