/** `npm run admin -- COMMAND`: the operator's commands. They open the store directly, with the server's configuration. */
import { ADMIN_USAGE, parseAdmin } from "../src/cli/command-line.ts";
import { runOnHost } from "../src/cli/host.ts";

await runOnHost({ parse: parseAdmin, usage: ADMIN_USAGE });
