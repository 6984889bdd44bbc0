/** `mandate init`: writes a configuration for production and its keys into a new folder, and says what to do next. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import * as v from "valibot";
import { loadSettings } from "../config/config.ts";
import { network } from "../config/values.ts";
import { EXIT } from "../limits/process.ts";
import { apiAudience } from "../policy/own-target.ts";
import { mainFile, SCHEMA_FILE } from "../program.ts";
import type { Result } from "../result.ts";
import { defined, ok } from "../result.ts";
import type { Command, Terminal } from "./command.ts";
import { onFiles } from "./command.ts";
import { flagsFor } from "./flags.ts";
import type { Places, Planned } from "./init/configuration.ts";
import { APP_REDIRECT, PROVIDER, plan } from "./init/configuration.ts";
import { takeDatabase } from "./init/database.ts";
import { openTerminal } from "./init/prompt.ts";
import type { FoundProvider, ToldProvider } from "./init/provider.ts";
import { findProvider } from "./init/provider.ts";
import type { Answers, Prompt } from "./init/questions.ts";
import { APP, collectAnswers, InputEnded } from "./init/questions.ts";
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
  const answers = await collectAnswers(given, prompt).catch((fault) => {
    if (!(fault instanceof InputEnded)) throw fault;
    printError("Stopped, and nothing was written.");
  });
  if (answers === undefined) return EXIT.refused;
  if (!answers.ok) {
    printError(answers.error);
    return EXIT.unusable;
  }
  const { provider: issuer, "client-id": clientId, "client-secret": secretFile } = answers.value;
  const caFile = given.one("provider-ca");
  const networks = given.all("provider-network") ?? [];
  const wrong = networks.map((one) => v.safeParse(network, one)).find(({ success }) => !success);
  if (wrong !== undefined) {
    printError(`--provider-network ${wrong.output} ${wrong.issues?.[0].message}`);
    return EXIT.unusable;
  }
  let provider: FoundProvider | undefined;
  if (issuer !== undefined) {
    const hasSecret = secretFile !== undefined;
    const found = await findProvider(
      defined<ToldProvider>({ issuer, clientId, networks, caFile, hasSecret }),
    );
    if (!found.ok) {
      printError(found.error.text);
      return found.error.unreachable ? EXIT.unavailable : EXIT.refused;
    }
    provider = found.value;
  }
  const places = { folder, data: given.one("data") ?? folder };
  const { store, files: ofDatabase } = takeDatabase(answers.value.store, folder);
  const known = { ...answers.value, store };
  const planned = plan(known, provider, places);
  const written = writeAll(places, new Map([...ofDatabase, ...filesOf(planned, { caFile, secretFile })]));
  if (!written.ok) {
    for (const problem of written.error) printError(problem);
    return EXIT.unusable;
  }
  for (const warning of written.value) printError(`warning: ${warning}`);
  for (const line of nextSteps(places, planned, known)) terminal.print(line);
  return EXIT.done;
}

type Taken = { caFile: string | undefined; secretFile: string | undefined };

/** Every file by its name in the folder. */
function filesOf({ config, secrets }: Planned, { caFile, secretFile }: Taken): ReadonlyMap<string, string> {
  const files = new Map([
    ["config.schema.json", readFileSync(SCHEMA_FILE, "utf8")],
    ["keys/encryption-key", makeSecret32()],
    ...secrets.map((name) => [`clients/${name}`, makeSecret32()] as const),
  ]);
  if (caFile !== undefined) files.set("provider-ca.pem", readNamed(caFile));
  if (secretFile !== undefined) files.set("keys/provider-secret", readNamed(secretFile));
  // The configuration is written last, so that there is none without the files that it names.
  return files.set("config.json", `${JSON.stringify(config, null, 2)}\n`);
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
): Result<readonly string[], readonly string[]> {
  const existed = existsSync(folder);
  const make = (path: string): void => void mkdirSync(join(folder, path), { recursive: true, mode: 0o700 });
  const removeAll = (): void => {
    if (!existed) rmSync(folder, { recursive: true, force: true });
    else for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  };
  try {
    make("tls");
    for (const [name, content] of files) {
      make(dirname(name));
      const file = join(folder, name);
      writeFileSync(name === "config.json" ? `${file}.new` : file, content, { mode: 0o600, flag: "wx" });
    }
    const written = join(folder, "config.json.new");
    const settings = loadSettings(written);
    if (!settings.ok) {
      removeAll();
      return settings;
    }
    renameSync(written, join(folder, "config.json"));
    for (const name of WRITTEN) mkdirSync(join(data, name), { recursive: true, mode: 0o700 });
    return ok(settings.value.warnings);
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

function nextSteps(
  { folder, data }: Places,
  { config, secrets }: Planned,
  answers: Answers,
): readonly string[] {
  const { issuer = "", administrator = "" } = answers;
  const at = resolve(folder);
  const configFile = join(at, "config.json");
  const writes = WRITTEN.map((name) => join(resolve(data), name));
  const flags = flagsFor({ reads: [at, resolve(data), ...namedFiles(answers)], writes }).join(" ");
  const curl = `curl -u "${administrator}:$(cat '${join(at, "clients", administrator)}')" -d grant_type=client_credentials`;
  const atProvider = `  At the provider, register the redirect URI ${issuer}/callback/${PROVIDER} and the key set ${issuer}/rp/jwks/${PROVIDER}.`;
  const ofPages = `  Users are shown the texts in "title" and "sentences" of the target, and in "agents": write yours.`;
  return [
    `Wrote ${configFile}; an editor explains each member by config.schema.json.`,
    `  Back up ${join(at, "keys/encryption-key")} apart from the database: without it the server cannot use the signing keys.`,
    ...secrets.map((name) => `  The secret of the client ${name} is in ${join(at, "clients", name)}.`),
    ...(config.signIn === undefined ? [] : [atProvider, ofPages]),
    "Next:",
    `  1. Put the certificate for ${new URL(issuer).host} with its chain into ${join(at, "tls/cert.pem")}, its key into ${join(at, "tls/key.pem")}.`,
    `  2. '${process.execPath}' '${mainFile()}' check --config '${configFile}'`,
    `  3. '${process.execPath}' --disable-warning=ExperimentalWarning --max-semi-space-size=16 --max-old-space-size=512 ${flags} '${mainFile()}' --config '${configFile}'`,
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
