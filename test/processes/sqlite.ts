import { runFiles } from "../support/run-files.ts";

await runFiles("adapters/store/*", "adapters/store/sqlite/*");
