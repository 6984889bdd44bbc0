/** `npm run client -- COMMAND`: clients with a secret and initial access tokens, kept in the store. */

import { CLIENT_USAGE, parseClients } from "../src/cli/clients/command-line.ts";
import { runOnHost } from "../src/cli/host.ts";

await runOnHost({ parse: parseClients, usage: CLIENT_USAGE });
