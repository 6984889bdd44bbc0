/** The flags of Node's permission model under which a server with one configuration runs, and may do no more. */
import { dirname, resolve, sep } from "node:path";
import type { Config } from "../config/config.ts";

export const PROGRAM = resolve(import.meta.dirname, "../..");

/** The files and folders that are read, and the folders that are written to, which are read as well. */
export type Touched = { reads: readonly string[]; writes: readonly string[] };

/** What a server touches of the files of its configuration, apart from its own program. */
export function touchedBy(configFile: string, { files, fixed }: Config): Touched {
  const { store, audit } = fixed;
  const written = [
    ...("sqlite" in store ? [store.sqlite] : []),
    ...(typeof audit.witness === "object" && "file" in audit.witness ? [audit.witness.file] : []),
  ];
  return {
    reads: [dirname(resolve(configFile)), ...files.keys()],
    writes: written.map((file) => dirname(file)),
  };
}

export function flagsFor({ reads, writes }: Touched): readonly string[] {
  const read = outermost([PROGRAM, ...reads, ...writes]).map((path) => `--allow-fs-read=${path}`);
  const written = outermost(writes).map((path) => `--allow-fs-write=${path}/*`);
  return ["--permission", "--allow-net", ...read, ...written].map(quoted);
}

/** Without those that are in another one. */
function outermost(paths: readonly string[]): readonly string[] {
  const whole = [...new Set(paths.map((path) => resolve(path)))];
  return whole.filter((path) => !whole.some((other) => path !== other && isWithin(path, other)));
}

const isWithin = (path: string, folder: string): boolean =>
  path.startsWith(folder.endsWith(sep) ? folder : folder + sep);

/** As a shell and a unit of systemd read it. */
const quoted = (word: string): string => (/^[\w/.:=@+,-]+$/.test(word) ? word : `'${word}'`);
