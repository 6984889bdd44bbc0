/**
 * `npm run release`: makes a release in `release/`: its folder, the archive of it, and their digests. What it makes
 * depends on nothing but the commit, so that two of one commit are equal byte for byte.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { create } from "tar";
import { bundle } from "./release/bundle.ts";
import { type Package, runtimePackages, sbom } from "./release/sbom.ts";

const ROOT = join(import.meta.dirname, "..");
const LAUNCHER = "bin/mandate.mjs";

/** What goes into a release as it is: the folder there, the folder here, and which files. */
const TAKEN = [
  { to: "sql/sqlite", from: "sql/sqlite", which: /\.sql$/ },
  { to: "sql/postgres", from: "sql/postgres", which: /\.sql$/ },
  { to: "src/config", from: "src/config", which: /^config\.schema\.json$/ },
  { to: "src/http", from: "src/http", which: /^openapi\.json$/ },
  { to: "deploy", from: "scripts/deploy", which: /\.(service|yaml|json|cfg|conf)$/ },
  { to: ".", from: ".", which: /^LICENSE$/ },
  { to: ".", from: ".github", which: /^(CHANGELOG|STABILITY|SECURITY)\.md$/ },
] as const;

/** The suite for any authorization server, which stands alone. */
const SUITE = "scripts/suite";

type Made = { folder: string; archive: string; suite: string };

/** `to` is emptied first. */
export async function makeRelease(to: string): Promise<Made> {
  const { version, description, license, engines } = readJson("package.json");
  const name = `mandate-${version}`;
  const program = await bundle(ROOT);
  const release = { commit: commit(), sha256: sha256(program) };
  const at = new Date(git("log", "-1", "--format=%cI"));
  const packages = runtimePackages(ROOT);
  const manifest = { name: "mandate", version, description, license, type: "module", engines };
  const files = new Map<string, string>([
    [`bin/${name}.mjs`, program],
    [LAUNCHER, read("scripts/release/mandate.mjs")],
    ["package.json", json({ ...manifest, bin: { mandate: LAUNCHER }, release })],
    ["sbom.cdx.json", sbom(packages, { version, sha256: release.sha256, madeAt: at.toISOString() })],
    ["README.md", read("scripts/release/README.md").replaceAll("VERSION", version)],
    ["Containerfile", read("scripts/release/Containerfile")],
    ...packages.map((of) => [`licenses/${of.name}.txt`, licenceOf(of)] as const),
    ...TAKEN.flatMap(({ to: there, from, which }) =>
      readdirSync(join(ROOT, from))
        .filter((file) => which.test(file))
        .map((file) => [join(there, file), forRelease(read(join(from, file)))] as const),
    ),
  ]);
  files.set("SHA256SUMS", sums([...files].map(([file, text]) => [file, sha256(text)])));
  rmSync(to, { recursive: true, force: true });
  const archive = await pack(to, name, files, at);
  const suite = await pack(to, `interop-suite-${version}`, suiteFiles(), at);
  const archives = [archive, suite].map((file) => [basename(file), sha256(readFileSync(file))] as const);
  writeFileSync(join(to, "SHA256SUMS"), sums(archives));
  return { folder: join(to, name), archive, suite };
}

const suiteFiles = (): Map<string, string> =>
  new Map([
    ["LICENSE", read("LICENSE")],
    ...readdirSync(join(ROOT, SUITE), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(ts|md|go|mod|java|xml)$/.test(file))
      .map((file) => [file, forRelease(read(join(SUITE, file)))] as const),
  ]);

/** Writes the files into a folder of this name, and makes the archive of it. */
async function pack(to: string, name: string, files: ReadonlyMap<string, string>, at: Date): Promise<string> {
  const folder = join(to, name);
  for (const [file, text] of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
    // As the umask of the one who makes it may have it, else.
    chmodSync(join(folder, file), file === LAUNCHER ? 0o755 : 0o644);
  }
  const archive = join(to, `${name}.tar.gz`);
  const sorted = [...files.keys()].sort().map((file) => join(name, file));
  await create({ cwd: to, file: archive, gzip: { level: 9 }, portable: true, mtime: at }, sorted);
  return archive;
}

/** It names the program of a release in place of that of the sources, and links to no page that a release has not. */
const forRelease = (text: string): string =>
  text.replaceAll(/\[([^\]]+)\]\(\.\.\/[^)]*\)/g, "$1").replaceAll("src/main.ts", LAUNCHER);

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const readJson = (file: string) => JSON.parse(read(file));
const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
const sha256 = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");

/** As `sha256sum --check` reads it, sorted by name. */
const sums = (of: readonly (readonly [string, string])[]): string =>
  [...of]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([file, digest]) => `${digest}  ${file}\n`)
    .join("");

const git = (...words: string[]): string =>
  execFileSync("git", words, { cwd: ROOT, encoding: "utf8" }).trim();

/** Files that are not committed make it another release than that of its commit. */
function commit(): string {
  const changed = git("status", "--porcelain") === "" ? "" : " with changes";
  return `${git("rev-parse", "HEAD")}${changed}`;
}

/** The text that a package comes with; one that only names the Unlicense leaves its text out. */
function licenceOf({ name, license }: Package): string {
  const folder = join("node_modules", name);
  const file = readdirSync(join(ROOT, folder)).find((entry) => /^licen[cs]e(\.md|\.txt)?$/i.test(entry));
  if (file !== undefined) return read(join(folder, file));
  if (license === "Unlicense") return read("scripts/release/unlicense.txt");
  throw new Error(`${name} comes without its licence`);
}

if (import.meta.main) {
  const { folder, archive, suite } = await makeRelease(join(ROOT, "release"));
  console.log(`Made ${folder}, ${archive} and ${suite}.`);
}
