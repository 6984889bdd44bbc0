/** Administration on the host, at the store itself: `npm run admin -- COMMAND`. It needs what the server needs. */
import { openPostgres } from "../src/adapters/postgres.ts";
import { openSqlite } from "../src/adapters/sqlite.ts";
import { loadConfig } from "../src/config.ts";
import { StoreUnavailable } from "../src/ports.ts";
import { parseCommand, USAGE } from "./admin/command-line.ts";
import { ADMIN_LOG } from "./admin/record.ts";
import { escapeUnsafe } from "./admin/text.ts";

const USAGE_EXIT = 2;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const complain = (line: string): void => void process.stderr.write(`${escapeUnsafe(line)}\n`);

async function main(args: readonly string[]): Promise<number> {
  const command = parseCommand(args);
  if (!command.ok) {
    complain(command.error);
    process.stderr.write(`\n${USAGE}\n`);
    return USAGE_EXIT;
  }
  const { configFile, run } = command.value;
  const config = loadConfig(configFile);
  if (!config.ok) {
    complain(`${configFile} does not fit:`);
    for (const problem of config.error) complain(`  ${problem}`);
    return 1;
  }
  const { settings, fixed } = config.value;
  if (fixed.instance === ADMIN_LOG) {
    complain(`audit.instance: "${ADMIN_LOG}" is the log of this command; a server needs another name`);
    return 1;
  }
  const opening =
    "sqlite" in fixed.store
      ? openSqlite({ file: fixed.store.sqlite })
      : openPostgres({ url: fixed.store.postgres });
  const store = await opening;
  try {
    return await run({ settings, store, say, complain });
  } finally {
    await store.close();
  }
}

// Whoever reads us has enough: `audit | head`.
process.stdout.on("error", () => process.exit(1));

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (fault) {
  // A wrong path, a foreign file or a store that is down is no mistake of this program.
  const known = fault instanceof StoreUnavailable || (fault instanceof Error && "syscall" in fault);
  if (!known) throw fault;
  complain(fault.message);
  process.exitCode = 1;
}
