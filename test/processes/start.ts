import { runFiles } from "../support/run-files.ts";

await runFiles("start", "wrong-configurations", "wrong-starts");
