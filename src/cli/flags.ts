/** The flags of Node's permission model under which a server with one configuration runs, and may do no more. */
import { dirname, resolve, sep } from "node:path";
import type { Config } from "../config/config.ts";
import { PROGRAM } from "../program.ts";

/** The files and folders that are read, and the folders that are written to, which are read as well. */
type Touched = { reads: readonly string[]; writes: readonly string[] };

/** What a server touches of the files of its configuration, apart from its own program. */
export function touchedBy(configFile: string, { files, fixed, settings }: Config): Touched {
  const { store, audit } = fixed;
  // These are read while the server runs, and not with the configuration.
  const sources = [
    ...[...settings.trustDomains.values()].map(({ bundle }) => bundle),
    ...[...settings.trustedIssuers.values()].map(({ keys }) => keys),
  ].flatMap((source) => ("file" in source ? [source.file] : []));
  const written = [
    ...("sqlite" in store ? [store.sqlite] : []),
    ...(typeof audit.witness === "object" && "file" in audit.witness ? [audit.witness.file] : []),
  ];
  return {
    reads: [dirname(resolve(configFile)), ...files.keys(), ...sources],
    writes: written.map((file) => dirname(file)),
  };
}

type Permission = { flag: string; scope: string; path?: string };

function permissionsFor({ reads, writes }: Touched): readonly Permission[] {
  const read = outermost([PROGRAM, ...reads, ...writes]);
  return [
    { flag: "--allow-net", scope: "net" },
    ...read.map((path) => ({ flag: `--allow-fs-read=${path}`, scope: "fs.read", path })),
    ...outermost(writes).map((path) => ({ flag: `--allow-fs-write=${path}/*`, scope: "fs.write", path })),
  ];
}

export const flagsFor = (touched: Touched): readonly string[] => [
  "--permission",
  ...permissionsFor(touched).map(({ flag }) => quoted(flag)),
];

/** The flags that this process lacks; none without the permission model. */
export function lackingHere(touched: Touched): readonly string[] {
  const mayDo = (scope: string, path?: string): boolean => process.permission?.has(scope, path) ?? true;
  const lacking = permissionsFor(touched).filter(({ scope, path }) => !mayDo(scope, path));
  return lacking.map(({ flag }) => quoted(flag));
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
