/** A release, as `npm run release` makes it and as an operator unpacks it. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { makeProfile } from "../scripts/dev-profile.ts";
import { makeRelease } from "../scripts/release.ts";
import { freePorts } from "../scripts/server-process.ts";

const ROOT = join(import.meta.dirname, "..");
const parent = mkdtempSync(join(tmpdir(), "mandate-release-"));
after(() => rmSync(parent, { recursive: true, force: true }));

let archive = "";
/** The suite for any authorization server, as it is unpacked. */
let suite = "";
/** The release as it is unpacked. */
let unpacked = "";
before(async () => {
  const made = await makeRelease(join(parent, "one"));
  ({ archive } = made);
  for (const each of [archive, made.suite]) execFileSync("tar", ["-xzf", each, "-C", parent]);
  suite = join(parent, basename(made.suite, ".tar.gz"));
  unpacked = join(parent, basename(archive, ".tar.gz"));
});

/** Without the options of the test run, whose modules a program under the permission model cannot read. */
const PLAIN = { ...process.env, NODE_OPTIONS: undefined, NODE_TEST_CONTEXT: undefined };

const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const programOf = (folder: string): string => join(folder, `bin/mandate-${version}.mjs`);

function start(folder: string, words: readonly string[], flags: readonly string[] = []) {
  const line = [...flags, join(folder, "bin/mandate.mjs"), ...words];
  const { status, stdout, stderr } = spawnSync(process.execPath, line, { encoding: "utf8", env: PLAIN });
  return { status, stdout, stderr };
}

test("two releases of one commit are equal byte for byte, whatever the umask, and their digests are right", async () => {
  const before = process.umask(0o077);
  const other = await makeRelease(join(parent, "two")).finally(() => process.umask(before));
  assert.ok(readFileSync(archive).equals(readFileSync(other.archive)));
  for (const folder of [unpacked, dirname(other.archive)]) {
    execFileSync("sha256sum", ["--check", "--quiet", "--strict", "SHA256SUMS"], { cwd: folder });
  }
});

test("the suite of a release asks the program of that release, and needs nothing beside Node", () => {
  const words = [
    "run.ts",
    "--adapter",
    "adapters/mandate.ts",
    "--only",
    "token.credentials,exchange.delegation",
  ];
  const env = { ...PLAIN, MANDATE: join(unpacked, "bin/mandate.mjs") };
  const { status, stdout } = spawnSync(process.execPath, words, { cwd: suite, encoding: "utf8", env });
  assert.match(stdout, /^all +2 +0 +0 +0$/m);
  assert.equal(status, 0);
});

test("--version of a release names the commit and the digest of the program", () => {
  const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT, encoding: "utf8" }).trim();
  const [sha256] = execFileSync("sha256sum", [programOf(unpacked)], { encoding: "utf8" }).split(" ");
  const { status, stdout, stderr } = start(unpacked, ["--version"]);
  assert.match(
    stdout,
    new RegExp(`^mandate ${version} \\(commit ${commit}( with changes)?, SHA-256 ${sha256}\\)\n$`),
  );
  assert.deepEqual({ status, stderr }, { status: 0, stderr: "" });
});

test("the program of a release has each module under its path, and the four packages", () => {
  const paths = new Set(
    readFileSync(programOf(unpacked), "utf8")
      .matchAll(/^\/\/ (src\/\S+\.ts|node_modules\/[^/\s]+)/gm)
      .map(([, path]) => path ?? ""),
  );
  const packages = [...paths].filter((path) => path.startsWith("node_modules/"));
  assert.deepEqual(
    packages.sort(),
    ["ipaddr.js", "jose", "postgres", "valibot"].map((name) => `node_modules/${name}`),
  );
  for (const path of ["src/main.ts", "src/flows/token.ts", "src/people/door.ts"])
    assert.ok(paths.has(path), path);
});

test("the program of a release is ASCII, and loads no module of the platform before one of its own needs it", () => {
  const text = readFileSync(programOf(unpacked), "utf8");
  assert.doesNotMatch(text, /[^\0-\x7f]/);
  assert.doesNotMatch(text, /^import /m);
  assert.match(text, /\\u00fc/, "an umlaut of a page");
});

test("the SBOM has the four packages with the digests of the lock file, and what each licence says is there", () => {
  const { components } = JSON.parse(readFileSync(join(unpacked, "sbom.cdx.json"), "utf8"));
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const listed = components.map(({ name, version: at }: Record<string, string>) => [name, at]);
  assert.deepEqual(Object.fromEntries(listed), dependencies);
  for (const { name, hashes } of components) {
    const { integrity } = packages[`node_modules/${name}`];
    assert.equal(`sha512-${Buffer.from(hashes[0].content, "hex").toString("base64")}`, integrity);
    assert.ok(readFileSync(join(unpacked, `licenses/${name}.txt`), "utf8").length > 500);
  }
});

const broken: readonly (readonly [what: string, change: (folder: string) => void, told: RegExp])[] = [
  [
    "a program of which one byte was changed",
    (folder) => {
      const bytes = readFileSync(programOf(folder));
      const at = bytes.length - 100;
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(programOf(folder), bytes);
    },
    /^Mandate \S+ is not the file of this release \(its SHA-256 is [0-9a-f]{64}, and not [0-9a-f]{64}\): unpack the archive again\.\n$/,
  ],
  [
    "whose own digest is another one",
    (folder) => {
      const file = join(folder, "package.json");
      writeFileSync(file, readFileSync(file, "utf8").replace(/("sha256": ")./, "$1x"));
    },
    /^Mandate \S+ is not the file of this release \(its SHA-256 is [0-9a-f]{64}, and not x[0-9a-f]{63}\): unpack the archive again\.\n$/,
  ],
  [
    "without its migrations",
    (folder) => rmSync(join(folder, "sql"), { recursive: true }),
    /^Mandate \S+\/sql is missing: unpack the whole archive again\.\n$/,
  ],
  [
    "without its program",
    (folder) => rmSync(programOf(folder)),
    /^Mandate \S+\.mjs is missing: unpack the whole archive again\.\n$/,
  ],
];
for (const [what, change, told] of broken) {
  test(`a release ${what} does not start, and says so in one line`, () => {
    const folder = mkdtempSync(join(parent, "broken-"));
    cpSync(unpacked, folder, { recursive: true });
    change(folder);
    const { status, stdout, stderr } = start(folder, ["--version"]);
    assert.match(stderr, told);
    assert.deepEqual({ status, stdout }, { status: 2, stdout: "" });
  });
}

test("an archive of which one byte was changed does not have the sum that was published with it", () => {
  const folder = mkdtempSync(join(parent, "sum-"));
  const bytes = readFileSync(archive);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  writeFileSync(join(folder, basename(archive)), bytes);
  cpSync(join(dirname(archive), "SHA256SUMS"), join(folder, "SHA256SUMS"));
  const { status, stdout } = spawnSync(
    "sha256sum",
    ["--check", "--strict", "--ignore-missing", "SHA256SUMS"],
    {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C" },
    },
  );
  assert.deepEqual({ status, stdout }, { status: 1, stdout: `${basename(archive)}: FAILED\n` });
});

test("where nothing can be written a release does not start, and says so in one line", async () => {
  const folder = join(parent, "readable");
  const [port = 0, idpPort = 0] = await freePorts(2);
  const { configFile } = await makeProfile(folder, { port, idpPort });
  execFileSync("chmod", ["a+rx", parent]);
  execFileSync("chmod", ["-R", "a=rX", folder]);
  // An administrator may write everywhere, so that the server runs as another user.
  const isAdministrator = process.getuid?.() === 0;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", join(unpacked, "bin/mandate.mjs"), "--config", configFile],
    { encoding: "utf8", env: PLAIN, ...(isAdministrator ? { uid: 65534, gid: 65534 } : {}) },
  );
  execFileSync("chmod", ["-R", "u+w", folder]);
  assert.match(
    stderr,
    /^The store in \S+ is not available: \S+mandate\.sqlite: cannot be opened: this user may not write it: change its owner or mode\n$/,
  );
  assert.deepEqual({ status, stdout }, { status: 3, stdout: "" });
});

test("a release that may not read its own folder names the flag, in one line", () => {
  const { status, stderr } = start(
    unpacked,
    ["--version"],
    ["--permission", `--allow-fs-read=${join(unpacked, "bin/mandate.mjs")}`],
  );
  assert.equal(
    stderr,
    `Mandate may not read its own folder: add --allow-fs-read=${unpacked}/ to Node's flags.\n`,
  );
  assert.equal(status, 2);
});

test("under a Node below 26 a release says so in one line", () => {
  const older =
    "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '24.9.0' } });";
  const { status, stderr } = start(
    unpacked,
    ["--version"],
    [`--import=data:text/javascript,${encodeURIComponent(older)}`],
  );
  assert.match(
    stderr,
    /^Mandate needs Node 26 or newer, and this is v\S+: install it from https:\/\/nodejs\.org\.\n$/,
  );
  assert.equal(status, 2);
});

test("the commands of the README of a release, typed in its folder, give a first token", async () => {
  const [, commands = ""] =
    /```sh\n([^`]*)```/.exec(readFileSync(join(unpacked, "README.md"), "utf8")) ?? assert.fail();
  const [port = 0] = await freePorts(1);
  const script = `${commands.replaceAll("8443", String(port))}\nkill %1; kill %1; wait %1`;
  const { stdout, stderr } = spawnSync("bash", ["-ec", script], {
    cwd: unpacked,
    encoding: "utf8",
    env: { ...PLAIN, PATH: `${dirname(process.execPath)}:${process.env.PATH}` },
  });
  // The log of the server is in the same output, and may stand in the same line.
  const [answer = "{}"] = /\{"access_token":[^}]*\}/.exec(stdout) ?? [];
  assert.equal(JSON.parse(answer).token_type, "Bearer", stdout + stderr);
});

/** Started as processes, by their command line alone: what they test of the sources they test of a release. */
const BLACK_BOX = ["cli/command-line", "cli/told", "conformance/rfc7009"];
test("the tests of a started server are green with the program of a release", () => {
  const files = BLACK_BOX.map((name) => `test/${name}.test.ts`);
  const { status, stdout } = spawnSync(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", "--test", "--test-reporter=dot", ...files],
    {
      cwd: ROOT,
      encoding: "utf8",
      env: { ...PLAIN, MANDATE_RELEASE: unpacked },
    },
  );
  assert.equal(status, 0, stdout);
});
