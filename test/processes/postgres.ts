import { runFiles } from "../support/run-files.ts";

await runFiles(
  "adapters/store/postgres/{combinations,messages,roles,store,tls,transports}",
  "support/{postgres,run-files}",
);
