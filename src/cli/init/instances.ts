/** Several instances on one machine, as `mandate init` writes them: what each has for itself, and their units of systemd. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { PROGRAM } from "../../program.ts";
import { err, ok, type Result } from "../../result.ts";
import { isJsonObject, type Json, type JsonObject } from "../../spec/rfc8259.ts";
import { type CommandArguments, readWhole } from "../options.ts";
import { operationsPort, type Places, type Planned, witnessOf } from "./configuration.ts";
import type { Answers } from "./questions.ts";

const NAMES = ["one", "two", "three", "four", "five", "six", "seven", "eight"];

/** The unit of a source tree, and that of a release. */
const TEMPLATES = ["scripts/deploy/mandate@.service", "deploy/mandate@.service"];

/** The names of the instances; none where there is one, which has the folder for itself. */
export function readInstances(
  given: CommandArguments,
  { store }: Pick<Answers, "store">,
): Result<readonly string[], string> {
  const count = readWhole(given, "instances", `from 1 to ${NAMES.length}`);
  if (!count.ok) return count;
  const { value = 1 } = count;
  if (value > NAMES.length) return err(`--instances is more than ${NAMES.length}`);
  if (value === 1) return ok([]);
  // STORE-D-23: a second process on SQLite ends at its start, because the file is locked by the first.
  if (store === "sqlite")
    return err("--instances requires --store with a PostgreSQL database, because SQLite serves one process");
  return ok(NAMES.slice(0, value));
}

/** STORE-D-23: the configuration of each instance by its file. What all of them share stands one folder above. */
export function configurationsOf(
  { config }: Planned,
  { folder, data }: Places,
  names: readonly string[],
): ReadonlyMap<string, JsonObject> {
  const { listen, operations, audit, ...shared } = fromBelow(config) as Record<string, JsonObject>;
  return new Map(
    names.map((name, index) => {
      const own = { folder: join(folder, name), data: join(data, name) };
      const port = operationsPort(Number(listen?.port), index);
      const members = {
        listen: { ...listen, reusePort: true },
        operations: { ...operations, port },
        audit: { ...audit, instance: name, witness: witnessOf(own) },
      };
      return [`${name}/config.json`, { ...shared, ...members }];
    }),
  );
}

/** The same with the files of the folder as they are named from one folder below. */
function fromBelow(value: Json): Json {
  if (Array.isArray(value)) return value.map(fromBelow);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(([name, member]) => {
    const isFile =
      ["file", "$schema"].includes(name) && typeof member === "string" && !member.startsWith("/");
    return [name, isFile ? join("..", member) : fromBelow(member ?? null)] as const;
  });
  return Object.fromEntries(entries);
}

/**
 * The unit of all instances, from the recipe, and the target that starts and stops them together, because under the
 * permission model no process starts another. `start` is the command line of the instance `%i`.
 */
export function unitsOf(
  names: readonly string[],
  start: string,
  { data }: Places,
): Result<ReadonlyMap<string, string>, string> {
  const template = TEMPLATES.map((file) => join(PROGRAM, file)).find((file) => existsSync(file));
  if (template === undefined)
    return err(
      `${PROGRAM} has no ${TEMPLATES[0]}: run this from the sources or from a release as it was unpacked`,
    );
  const lines = {
    WorkingDirectory: PROGRAM,
    ExecStart: start.replaceAll("%", "%%").replaceAll("%%i/", "%i/"),
    StateDirectory: undefined,
    StateDirectoryMode: undefined,
    ProtectSystem: `strict\nReadWritePaths="${resolve(data)}/%i"`,
  };
  const unit = Object.entries(lines).reduce(
    (text, [name, value]) =>
      text.replace(new RegExp(`^${name}=.*\n`, "m"), () => (value === undefined ? "" : `${name}=${value}\n`)),
    readFileSync(template, "utf8"),
  );
  const wanted = names.map((name) => `mandate@${name}.service`).join(" ");
  const target = `[Unit]
Description=Mandate, all instances of this machine
Wants=${wanted}

[Install]
WantedBy=multi-user.target
`;
  return ok(
    new Map([
      ["systemd/mandate@.service", unit],
      ["systemd/mandate.target", target],
    ]),
  );
}
