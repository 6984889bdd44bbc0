/** What a command tells of files, folders and flags that are wrong: which one, why, and what to do; no words of the platform. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runCommandLine } from "../../scripts/command-line.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { freePorts, MAIN, PROGRAM } from "../../scripts/server-process.ts";
import { openStore } from "../../src/adapters/store/open.ts";

let folder: string;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate-told-"));
  const [port = 0, idpPort = 0] = await freePorts(2);
  await makeProfile(join(folder, "data"), { port, idpPort });
  await (await openStore({ sqlite: join(folder, "data/mandate.sqlite") })).close();
  const config = JSON.parse(readFileSync(join(folder, "data/config.json"), "utf8"));
  const store = { postgres: "postgres://u:p@127.0.0.1:1/d", startSeconds: 0 };
  writeFileSync(join(folder, "data/far.json"), JSON.stringify({ ...config, store }));
  mkdirSync(join(folder, "folder"));
  writeFileSync(join(folder, "text"), "nothing of the kind\n");
  writeFileSync(join(folder, "marked"), "\ufeff{}");
  writeFileSync(join(folder, "deep"), "[".repeat(5000));
  writeFileSync(join(folder, "url"), "postgres://u@h/d?sslrootcert=folder");
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** What the platform and the validator call it. */
const RAW =
  /\b(?:E[A-Z]{4,}|ERR_[A-Z_]+|json_\w+|utf8_\w+|Expected|Invalid (?:type|key)|undefined)\b|\n {4}at |node:|Node\.js v|Access to this API/;

const at = (text: string): string => text.replaceAll("DIR", folder);
const ISSUER = ["--issuer", "https://as.example"];
const CONFIG = ["--config", "DIR/data/config.json"];
const FOLDER = "DIR/folder: it is a folder: name a file";
const NONE = "DIR/none: there is no such file or folder: correct its name, or make it";
const BY_PROVIDER = [...ISSUER, "--provider", "https://idp.example", "--provider-ca"];

const rows: readonly (readonly [words: readonly string[], code: number, told: string])[] = [
  [["explain", "DIR/folder", ...CONFIG], 2, "DIR/folder: cannot be read: it is a folder: name a file"],
  [["explain", "DIR/text", ...CONFIG], 2, "DIR/text: is not valid JSON"],
  [["explain", "DIR/marked", ...CONFIG], 2, "DIR/marked: begins with a byte order mark: save it without"],
  [["explain", "DIR/deep", ...CONFIG], 2, "DIR/deep: is nested too deeply"],
  [["policy", "test", "DIR/folder", ...CONFIG], 2, "DIR/folder: cannot be read: it is a folder: name a file"],
  [["policy", "test", "DIR/text", ...CONFIG], 2, "DIR/text: is not valid JSON"],
  [
    ["policy", "test", "DIR/marked", ...CONFIG],
    2,
    "DIR/marked: begins with a byte order mark: save it without",
  ],
  [["audit", "verify", "--export", "DIR/folder"], 2, FOLDER],
  [["audit", "verify", "--export", "DIR/text", "--checkpoints", "DIR/folder"], 2, FOLDER],
  [["audit", "verify", "--export", "DIR/text", "--jwks", "DIR/folder"], 2, FOLDER],
  [["audit", "verify", "--export", "DIR/text", "--jwks", "DIR/none"], 2, NONE],
  [["init", "DIR/new", ...ISSUER, "--store", "DIR/folder"], 2, FOLDER],
  [["init", "DIR/new", ...ISSUER, "--store", "DIR/url"], 2, FOLDER],
  [["init", "DIR/new", ...BY_PROVIDER, "DIR/folder"], 2, FOLDER],
  [["init", "DIR/new", ...ISSUER, "--listen", "localhost:70000"], 2, "--listen is not HOST:PORT"],
  [
    ["init", "DIR/new", ...BY_PROVIDER, "DIR/text", "--provider-network", "10.0.0.0"],
    2,
    "--provider-network 10.0.0.0 is not a network in CIDR form",
  ],
];
for (const [words, code, told] of rows) {
  test(`mandate ${words.join(" ")} says "${told}"`, async () => {
    const run = await runCommandLine(words.map(at));
    assert.equal(run.err.trimEnd().split("\n").at(-1)?.trim(), at(told));
    assert.equal(run.code, code);
    assert.doesNotMatch(run.err + run.out, RAW);
  });
}

const ALONE = ["--permission", `--allow-fs-read=${PROGRAM}`];
const READS = [...ALONE, "--allow-fs-read=DIR"];
const WRITES = [...READS, "--allow-fs-write=DIR/*"];
const NO_NET = "Node was started without --allow-net: add that flag";

const flagged: readonly (readonly [
  flags: readonly string[],
  words: readonly string[],
  code: number,
  told: string,
])[] = [
  [
    ALONE,
    ["policy", "check", ...CONFIG],
    1,
    "DIR/data/config.json: cannot be read: it is outside of the folders of --allow-fs-read: move it, or add the flag for it",
  ],
  [
    READS,
    ["keys", "new-encryption-key", "DIR/key"],
    2,
    "DIR/key: it is outside of the folders of --allow-fs-write: move it, or add the flag for it",
  ],
  [
    READS,
    ["backup", "DIR/copy", ...CONFIG],
    2,
    "DIR/copy: it is outside of the folders of --allow-fs-write: move it, or add the flag for it",
  ],
  [
    [...READS, "--allow-net"],
    ["serve", ...CONFIG],
    3,
    "The store in DIR/data/config.json is not available: DIR/data/mandate.sqlite: cannot be opened: it is outside of the folders of --allow-fs-write: move it, or add the flag for it",
  ],
  [WRITES, ["serve", ...CONFIG], 1, NO_NET],
  [WRITES, ["audit", "--config", "DIR/data/far.json"], 3, `the connection to the database failed: ${NO_NET}`],
  [
    WRITES,
    ["init", "DIR/new", ...ISSUER, "--provider", "https://idp.example"],
    3,
    `https://idp.example/.well-known/openid-configuration cannot be fetched (${NO_NET}): correct --provider, --provider-ca or --provider-network`,
  ],
];
for (const [flags, words, code, told] of flagged) {
  test(`under the flags ${flags.slice(2).join(" ") || "of the program alone"}, mandate ${words.join(" ")} says "${told}"`, () => {
    const line = ["--disable-warning=ExperimentalWarning", ...flags, MAIN, ...words].map(at);
    // What a run of all tests preloads: without it, each process takes the types out of its sources.
    const { NODE_OPTIONS } = process.env;
    const { status, stdout, stderr } = spawnSync(process.execPath, line, {
      encoding: "utf8",
      env: { NODE_OPTIONS },
    });
    assert.doesNotMatch(stderr + stdout, RAW);
    const last = stderr.trimEnd().split("\n").at(-1)?.trim() ?? "";
    assert.ok(last.includes(at(told)), `${last}\n${at(told)}`);
    assert.equal(status, code);
  });
}
