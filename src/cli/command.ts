/** What a command is once its command line was read. */

import type { EncryptionKeys } from "../adapters/crypto/encryption-keys.ts";
import type { KeyCustody } from "../adapters/crypto/seal.ts";
import type { Store } from "../adapters/store/store.ts";
import type { Config } from "../config/config.ts";
import { ok, type Result } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import { type CommandArguments, type CommandUsage, configOf } from "./options.ts";

export type Terminal = {
  print: (line: string) => void;
  printError: (line: string) => void;
};

/** What a command receives that only looks at the audit trail. */
export type Viewer = Terminal & Pick<Settings, "agents"> & { store: Store };

/** What a command that works on the store receives from its caller. */
export type Admin = Viewer & {
  settings: Settings;
  encryptionKeys: EncryptionKeys;
  /** Where private keys are made and opened. */
  custody: KeyCustody;
};

type Work<On> = (on: On) => Promise<number>;

/** `whenAway`: what it means for this command that the store is not available. */
type OnStore = { readonly configFile: string; readonly whenAway?: string | undefined };

/** `run` resolves to the exit code. */
export type Command =
  | (OnStore & { readonly on: "store"; readonly run: Work<Admin> })
  | (OnStore & { readonly on: "trail"; readonly run: Work<Viewer> })
  | { readonly on: "config"; readonly configFile: string; readonly run: Work<Terminal & { config: Config }> }
  | { readonly on: "files"; readonly run: Work<Terminal> };

/** A command on the store that the configuration names. */
export const onStore = (
  given: CommandArguments,
  run: Work<Admin>,
  whenAway?: string,
): Result<Command, never> => ok({ on: "store", configFile: configOf(given), run, whenAway });

/** AUDIT-D-18: a command on the audit trail of this store, for which nothing else of the configuration is read. */
export const onStoredTrail = (
  given: CommandArguments,
  run: Work<Viewer>,
  whenAway?: string,
): Result<Command, never> => ok({ on: "trail", configFile: configOf(given), run, whenAway });

/** A command that opens itself what it needs of the configuration. */
export const onConfig = (
  given: CommandArguments,
  run: Work<Terminal & { config: Config }>,
): Result<Command, never> => ok({ on: "config", configFile: configOf(given), run });

export const onFiles = (run: Work<Terminal>): Result<Command, never> => ok({ on: "files", run });

/** Checks the values that were given, before anything is opened. */
type ReadCommand = (given: CommandArguments) => Result<Command, string>;

/** A row of the table of commands; its code is loaded when it is called. */
export type CommandRow = { readonly usage: CommandUsage; readonly load: () => Promise<ReadCommand> };
