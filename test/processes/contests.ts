import { runFiles } from "../support/run-files.ts";

await runFiles("conformance/{contests,kill,neighbours,throttle}");
