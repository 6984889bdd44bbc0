/** `npm run client -- COMMAND`: clients with a secret and initial access tokens, kept in the store. */
import { runOnHost } from "./admin/host.ts";
import { parseCommand, USAGE } from "./client/command-line.ts";

await runOnHost({ parse: parseCommand, usage: USAGE });
