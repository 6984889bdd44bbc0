/** `mandate migrate`: brings the tables up to this version, as a role that may do what the server may not. */
import { openStore, pendingScripts } from "../adapters/store/open.ts";
import { EXIT } from "../limits/process.ts";
import type { Result } from "../result.ts";
import { type Command, onConfig } from "./command.ts";
import type { CommandArguments } from "./options.ts";

export const migrateCommand = (given: CommandArguments): Result<Command, string> =>
  onConfig(given, async ({ config, print }) => {
    const { store: place } = config.fixed;
    const scripts = await pendingScripts(place);
    if (given.has("dry-run")) {
      for (const script of scripts) print(script);
      return EXIT.done;
    }
    await (await openStore(place)).close();
    print(
      scripts.length === 0
        ? "The tables are those of this version; nothing was changed."
        : `The tables are those of this version, after ${scripts.length} migration${scripts.length === 1 ? "" : "s"}.`,
    );
    return EXIT.done;
  });
