/** Commands that an operator runs on the host, within this process: a process for each costs more than the command. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import type { HostRun } from "../../scripts/command-line.ts";
import { MAIN } from "../../scripts/server-process.ts";
import type { EncryptionKeys } from "../../src/adapters/crypto/encryption-keys.ts";
import { sealedKeys } from "../../src/adapters/crypto/seal.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Admin, Command } from "../../src/cli/command.ts";
import { readCommandLine } from "../../src/cli/command-line.ts";
import { readCommand } from "../../src/cli/host.ts";
import { loadConfig } from "../../src/config/config.ts";
import { err, type Result } from "../../src/result.ts";
import type { World } from "./world.ts";

/** What a command line asks for, or why it is refused. */
export async function parseCommand(words: readonly string[]): Promise<Result<Command, string>> {
  const invocation = readCommandLine(words);
  if (invocation.kind === "command") return readCommand(invocation.row, invocation.args);
  return err(
    invocation.kind === "wrong" ? invocation.problem : `is a command line of the kind ${invocation.kind}`,
  );
}

/** The same as `runCommandLine` in a process of its own. */
export async function spawnCommandLine(words: readonly string[]): Promise<HostRun> {
  const child = spawn(process.execPath, [MAIN, ...words]);
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await exited, out, err };
}

type Open = Pick<Admin, "settings" | "store"> & Partial<Pick<Admin, "encryptionKeys" | "custody">>;

const ANY_KEYS: EncryptionKeys = [new Uint8Array(32)];

/** Runs a command with an open store; only `mandate keys` needs the key-encryption key. */
export async function runCommand(
  words: readonly string[],
  { settings, store, encryptionKeys = ANY_KEYS, custody = sealedKeys(encryptionKeys) }: Open,
): Promise<HostRun> {
  const command = await parseCommand(words);
  assert.ok(command.ok && command.value.on !== "config", JSON.stringify(command));
  const run: HostRun = { code: null, out: "", err: "" };
  run.code = await command.value.run({
    settings,
    agents: settings.agents,
    store,
    encryptionKeys,
    custody,
    print: (line) => {
      run.out += `${line}\n`;
    },
    printError: (line) => {
      run.err += `${line}\n`;
    },
  });
  return run;
}

type Host = Pick<World, "configFile">;

/** `mandate clients`, and what it prints; a refusal is an error with its text. */
export async function runClient({ configFile }: Host, ...words: string[]): Promise<string> {
  const config = loadConfig(configFile);
  assert.ok(config.ok, JSON.stringify(config));
  const { settings, fixed } = config.value;
  const store = await openStore(fixed.store);
  try {
    const { code, out, err } = await runCommand(["clients", ...words], { settings, store });
    if (code !== 0) throw new Error(err.trimEnd());
    return out;
  } finally {
    await store.close();
  }
}

/** An initial access token for clients of this class. */
export async function createInitialToken(
  host: Host,
  registrationClass: string,
  ...words: string[]
): Promise<string> {
  const command = ["initial-token", "create", "--class", registrationClass, "--json"];
  return JSON.parse(await runClient(host, ...command, ...words)).initial_access_token;
}
