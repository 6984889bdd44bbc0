/** Clients with a secret, made on the host at the store itself: `npm run client -- COMMAND`. */
import { runOnHost } from "./admin/host.ts";
import { parseCommand, USAGE } from "./client/command-line.ts";

await runOnHost({ parse: parseCommand, usage: USAGE });
