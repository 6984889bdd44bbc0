import { runFiles } from "../support/run-files.ts";

await runFiles("adapters/*", "adapters/{audit,clients,crypto,remote,signals}/*", "people/adapters/*");
