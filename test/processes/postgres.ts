import { runFiles } from "../support/run-files.ts";

await runFiles(
  "adapters/store/postgres/{combinations,hosts,look-ups,messages,refused,roles,serializable,split-reads,store,tls,transports}",
  "support/{postgres,run-files}",
);
