import { runFiles } from "../support/run-files.ts";

await runFiles("start", "capacity", "wrong-configurations", "wrong-starts", "work", "people/door");
