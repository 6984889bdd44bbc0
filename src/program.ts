/**
 * This program on the disk. It runs from the sources, or as the one file of a release: both stand one folder below
 * `package.json`, and have the same files beside them.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const PROGRAM = resolve(import.meta.dirname, "..");

/** The JSON Schema of the configuration file. */
export const SCHEMA_FILE = join(PROGRAM, "src/config/config.schema.json");

type Manifest = {
  version: string;
  bin: { mandate: string };
  /** Only in a release: the commit that it was made from, and the SHA-256 of its one file, both in hexadecimal. */
  release?: { commit: string; sha256: string };
};

/** `package.json` of this program. */
export const readManifest = (): Manifest => JSON.parse(readFileSync(join(PROGRAM, "package.json"), "utf8"));

/** The file that Node runs for a command line. */
export const mainFile = (): string => join(PROGRAM, readManifest().bin.mandate);

/** What runs here; without commit and digest it runs from its sources. */
type Build = { version: string } & Partial<NonNullable<Manifest["release"]>>;

export function readBuild(): Build {
  const { version, release } = readManifest();
  return { version, ...release };
}

/** What `mandate --version` says after the name. */
export function versionText(): string {
  const { version, commit, sha256 } = readBuild();
  if (commit === undefined) return `${version} (from its sources)`;
  return `${version} (commit ${commit}, SHA-256 ${sha256})`;
}
