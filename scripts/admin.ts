/** `npm run admin -- COMMAND`: the operator's commands. They open the store directly, with the server's configuration. */
import { parseCommand, USAGE } from "./admin/command-line.ts";
import { runOnHost } from "./admin/host.ts";

await runOnHost({ parse: parseCommand, usage: USAGE });
