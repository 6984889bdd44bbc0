import { runFiles } from "../support/run-files.ts";

await runFiles(
  "start",
  "capacity",
  "wrong-configurations",
  "wrong-options",
  "wrong-starts",
  "work",
  "people/door",
);
