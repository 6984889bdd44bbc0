/** `mandate init`: writes a configuration for production and its keys into a new folder, and says what to do next. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import * as v from "valibot";
import { loadSettings } from "../config/config.ts";
import { network } from "../config/values.ts";
import { EXIT } from "../limits/process.ts";
import { apiAudience } from "../policy/own-target.ts";
import { mainFile, SCHEMA_FILE } from "../program.ts";
import { defined, ok, type Result } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { type Command, onFiles, type Terminal } from "./command.ts";
import { flagsFor } from "./flags.ts";
import { APP_REDIRECT, type Places, type Planned, PROVIDER, plan } from "./init/configuration.ts";
import { configurationsOf, readInstances, unitsOf } from "./init/instances.ts";
import { openTerminal } from "./init/prompt.ts";
import { type FoundProvider, findProvider, type ToldProvider } from "./init/provider.ts";
import { type Answers, APP, collectAnswers, InputEnded, type Prompt } from "./init/questions.ts";
import { makeSecret32 } from "./keys/encryption-key.ts";
import { readNamed } from "./named-file.ts";
import type { CommandArguments } from "./options.ts";

export function initCommand(given: CommandArguments): Result<Command, string> {
  return onFiles(async (terminal) => {
    const person = openTerminal();
    try {
      return await init(given, terminal, person?.prompt);
    } finally {
      person?.close();
    }
  });
}

/** `prompt` is absent where no person can answer. */
export async function init(given: CommandArguments, terminal: Terminal, prompt?: Prompt): Promise<number> {
  const { printError } = terminal;
  const [folder = ""] = given.args;
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    printError(
      `${folder} is not empty, and nothing in it is overwritten: give another folder, or empty this one`,
    );
    return EXIT.refused;
  }
  const collected = await collect(given, printError, prompt);
  if (typeof collected === "number") return collected;
  const { answers, names, caFile, provider } = collected;
  const places = { folder, data: given.one("data") ?? folder };
  const { store, files: ofDatabase } = takeDatabase(answers.store, folder);
  const known = { ...answers, store };
  const planned = plan(known, provider, places);
  const isAlone = names.length === 0;
  const configs = isAlone
    ? new Map([["config.json", planned.config]])
    : configurationsOf(planned, places, names);
  const units = isAlone
    ? ok(new Map<string, string>())
    : unitsOf(names, startOf(places, "%i", known), places);
  if (!units.ok) {
    printError(units.error);
    return EXIT.refused;
  }
  const files = new Map([
    ...ofDatabase,
    ...filesOf(planned, { caFile, secretFile: answers["client-secret"] }),
    ...units.value,
  ]);
  const written = writeAll(places, files, configs);
  if (!written.ok) {
    for (const problem of written.error) printError(problem);
    return EXIT.unusable;
  }
  for (const warning of written.value) printError(`warning: ${warning}`);
  for (const line of nextSteps(places, planned, known, names)) terminal.print(line);
  return EXIT.done;
}

type Collected = {
  answers: Answers;
  names: readonly string[];
  caFile: string | undefined;
  provider: FoundProvider | undefined;
};

/** What was answered, with what the provider says of itself; a number is the code to end with, and why was told. */
async function collect(
  given: CommandArguments,
  printError: Terminal["printError"],
  prompt?: Prompt,
): Promise<Collected | number> {
  const end = (message: string, code: number = EXIT.unusable): number => {
    printError(message);
    return code;
  };
  const answers = await collectAnswers(given, prompt).catch((fault) => {
    if (!(fault instanceof InputEnded)) throw fault;
  });
  if (answers === undefined) return end("Stopped, and nothing was written.", EXIT.refused);
  if (!answers.ok) return end(answers.error);
  const names = readInstances(given, answers.value);
  if (!names.ok) return end(names.error);
  const { provider: issuer, "client-id": clientId, "client-secret": secretFile } = answers.value;
  const caFile = given.one("provider-ca");
  const networks = given.all("provider-network") ?? [];
  const wrong = networks.map((one) => v.safeParse(network, one)).find(({ success }) => !success);
  if (wrong !== undefined) return end(`--provider-network ${wrong.output} ${wrong.issues?.[0].message}`);
  const collected = { answers: answers.value, names: names.value, caFile };
  if (issuer === undefined) return { ...collected, provider: undefined };
  const hasSecret = secretFile !== undefined;
  const told = defined<ToldProvider>({ issuer, clientId, networks, caFile, hasSecret });
  const found = await findProvider(told);
  if (found.ok) return { ...collected, provider: found.value };
  return end(found.error.text, found.error.unreachable ? EXIT.unavailable : EXIT.refused);
}

type Taken = { caFile: string | undefined; secretFile: string | undefined };

/** Every file but the configurations by its name in the folder. */
function filesOf({ secrets }: Planned, { caFile, secretFile }: Taken): ReadonlyMap<string, string> {
  const files = new Map([
    ["config.schema.json", readFileSync(SCHEMA_FILE, "utf8")],
    ["keys/encryption-key", makeSecret32()],
    ...secrets.map((name) => [`clients/${name}`, makeSecret32()] as const),
  ]);
  if (caFile !== undefined) files.set("provider-ca.pem", readNamed(caFile));
  if (secretFile !== undefined) files.set("keys/provider-secret", readNamed(secretFile));
  return files;
}

/** The folders that the server writes to. */
const WRITTEN = ["data", "witness"];

/**
 * Writes all files, readable by the owner only, and returns what the operator is warned of; or writes none, and returns
 * the problems.
 */
function writeAll(
  { folder, data }: Places,
  files: ReadonlyMap<string, string>,
  configs: ReadonlyMap<string, JsonObject>,
): Result<readonly string[], readonly string[]> {
  const existed = existsSync(folder);
  const make = (path: string): void => {
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
    } catch (fault) {
      // Where the disk is read-only, the platform says that of one folder alone, and of several ENOENT.
      if (!existed) mkdirSync(folder, { mode: 0o700 });
      throw fault;
    }
  };
  const removeAll = (): void => {
    if (!existed) rmSync(folder, { recursive: true, force: true });
    else for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  };
  const write = (name: string, content: string): string => {
    const file = join(folder, name);
    make(dirname(file));
    writeFileSync(file, content, { mode: 0o600, flag: "wx" });
    return file;
  };
  try {
    make(join(folder, "tls"));
    for (const [name, content] of files) write(name, content);
    // The configurations are written last, so that there is none without the files that it names.
    const unproven = [...configs].map(([name, config]) =>
      write(`${name}.new`, `${JSON.stringify(config, null, 2)}\n`),
    );
    let warnings: readonly string[] = [];
    for (const file of unproven) {
      const settings = loadSettings(file);
      if (!settings.ok) {
        removeAll();
        return settings;
      }
      ({ warnings } = settings.value);
    }
    for (const file of unproven) renameSync(file, file.replace(/\.new$/, ""));
    for (const name of configs.keys())
      for (const written of WRITTEN) make(join(data, dirname(name), written));
    return ok(warnings);
  } catch (fault) {
    removeAll();
    throw fault;
  }
}

/**
 * The files of the operator that the configuration names and that are outside of its folder: the server reads them,
 * too.
 */
const namedFiles = ({ store = "sqlite", bundle = "" }: Answers): string[] =>
  [store === "sqlite" ? "" : store, bundle.startsWith("https:") ? "" : bundle]
    .filter((file) => file !== "")
    .map((file) => resolve(file));

/** The command line of an instance; without a name it has the folder for itself. */
function startOf({ folder, data }: Places, name: string, answers: Answers): string {
  const [at, writesTo] = [resolve(folder), join(resolve(data), name)];
  const writes = WRITTEN.map((one) => join(writesTo, one));
  const flags = flagsFor({ reads: [at, writesTo, ...namedFiles(answers)], writes }).join(" ");
  return `'${process.execPath}' --disable-warning=ExperimentalWarning --max-semi-space-size=16 --max-old-space-size=512 ${flags} '${mainFile()}' --config '${join(at, name, "config.json")}'`;
}

function nextSteps(
  places: Places,
  { config, secrets }: Planned,
  answers: Answers,
  names: readonly string[],
): readonly string[] {
  const { issuer = "", administrator = "" } = answers;
  const at = resolve(places.folder);
  const [first = "", ...others] = (names.length === 0 ? [""] : names).map((name) =>
    join(at, name, "config.json"),
  );
  const curl = `curl -u "${administrator}:$(cat '${join(at, "clients", administrator)}')" -d grant_type=client_credentials`;
  const atProvider = `  At the provider, register the redirect URI ${issuer}/callback/${PROVIDER} and the key set ${issuer}/rp/jwks/${PROVIDER}.`;
  const ofPages = `  Users are shown the texts in "title" and "sentences" of the target, and in "agents": write yours.`;
  const alike = `  They differ in "operations" and "audit" alone: change all else in each of them.`;
  const owned = [...new Set([at, resolve(places.data)])].map((path) => `'${path}'`).join(" ");
  const starts = names.map((name) => `     Without systemd: ${startOf(places, name, answers)}`);
  const together = `chown -R mandate: ${owned} && cp '${at}'/systemd/* /etc/systemd/system/ && systemctl daemon-reload && systemctl enable --now mandate.target`;
  return [
    `Wrote ${[first, ...others].join(", ")}; an editor explains each member by config.schema.json.`,
    ...(names.length === 0 ? [] : [alike]),
    `  Back up ${join(at, "keys/encryption-key")} apart from the database: without it the server cannot use the signing keys.`,
    ...secrets.map((name) => `  The secret of the client ${name} is in ${join(at, "clients", name)}.`),
    ...(config.signIn === undefined ? [] : [atProvider, ofPages]),
    "Next:",
    `  1. Put the certificate for ${new URL(issuer).host} with its chain into ${join(at, "tls/cert.pem")}, its key into ${join(at, "tls/key.pem")}.`,
    `  2. '${process.execPath}' '${mainFile()}' check --config '${first}'`,
    ...(names.length === 0 ? [`  3. ${startOf(places, "", answers)}`] : [`  3. ${together}`, ...starts]),
    ...(secrets.includes(administrator)
      ? [`  4. ${curl} -d scope=audit:read --data-urlencode audience=${apiAudience(issuer)} ${issuer}/token`]
      : []),
    ...(config.signIn === undefined ? [] : [`  Or open in a browser: ${firstPage(issuer)}`]),
  ];
}

/** A consent page of the first app. No app listens at the end, so that the code is in the address and worth nothing. */
function firstPage(issuer: string): string {
  const query = new URLSearchParams({
    response_type: "code",
    client_id: APP,
    redirect_uri: APP_REDIRECT,
    code_challenge: makeSecret32(),
    code_challenge_method: "S256",
  });
  return `${issuer}/authorize?${query}`;
}

const AUTHORITY = "database-ca.pem";

/**
 * The file of the URL as the configuration names it. A URL without `sslrootcert` stays in its file, which another
 * program may renew.
 */
function takeDatabase(
  store: string | undefined,
  folder: string,
): { store: string; files: readonly (readonly [name: string, content: string])[] } {
  if (store === undefined || store === "sqlite") return { store: "sqlite", files: [] };
  const url = readNamed(store);
  const named = new URLSearchParams(url.trim().split("?")[1]).get("sslrootcert");
  if (named === null || named === "system") return { store, files: [] };
  const authority = readNamed(resolve(dirname(store), named));
  const copied = url.replace(/([?&]sslrootcert=)[^&\s]*/, `$1${AUTHORITY}`);
  return {
    store: join(folder, "keys/database-url"),
    files: [
      [AUTHORITY, authority],
      ["keys/database-url", copied],
    ],
  };
}
