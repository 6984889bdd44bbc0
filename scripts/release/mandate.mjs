#!/usr/bin/env node
// Starts the program of this release, after a look at what it needs. It is written for older versions of Node, too,
// which could not read the program itself.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const place = (path) => fileURLToPath(new URL(path, import.meta.url));

function lacks() {
  if (Number.parseInt(process.versions.node, 10) < 26)
    return `needs Node 26 or newer, and this is ${process.version}: install it from https://nodejs.org`;
  const manifest = JSON.parse(readFileSync(place("../package.json"), "utf8"));
  const program = place(`mandate-${manifest.version}.mjs`);
  const missing = [program, place("../sql"), place("../src/config/config.schema.json")].find(
    (file) => !existsSync(file),
  );
  if (missing !== undefined) return `${missing} is missing: unpack the whole archive again`;
  // An import of it would make every member that it has, which takes longer than the digest.
  const { hash } = process.getBuiltinModule("node:crypto");
  const sha256 = hash("sha256", readFileSync(program));
  if (sha256 !== manifest.release.sha256)
    return `${program} is not the file of this release (its SHA-256 is ${sha256}, and not ${manifest.release.sha256}): unpack the archive again`;
  return { program };
}

function look() {
  try {
    return lacks();
  } catch (fault) {
    if (fault.code !== "ERR_ACCESS_DENIED") throw fault;
    return `may not read its own folder: add --allow-fs-read=${place("..")} to Node's flags`;
  }
}

const found = look();
if (typeof found === "string") {
  console.error(`Mandate ${found}.`);
  process.exitCode = 2;
} else {
  await import(pathToFileURL(found.program));
}
