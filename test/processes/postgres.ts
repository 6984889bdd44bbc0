import { runFiles } from "../support/run-files.ts";

await runFiles(
  "adapters/store/postgres/{combinations,hosts,look-ups,messages,refused,roles,split-reads,store,tls,transports}",
  "support/{postgres,run-files}",
);
