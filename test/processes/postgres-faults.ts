import { runFiles } from "../support/run-files.ts";

await runFiles("adapters/store/postgres/{faults,outages}");
