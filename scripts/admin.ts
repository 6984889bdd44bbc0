/** Administration on the host, at the store itself: `npm run admin -- COMMAND`. It needs what the server needs. */
import { parseCommand, USAGE } from "./admin/command-line.ts";
import { runOnHost } from "./admin/host.ts";

await runOnHost({ parse: parseCommand, usage: USAGE });
