import { runFiles } from "../support/run-files.ts";

await runFiles(
  "start",
  "start-waits",
  "outage",
  "capacity",
  "wrong-configurations",
  "wrong-options",
  "wrong-starts",
  "work",
  "people/door",
);
