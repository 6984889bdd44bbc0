import { runFiles } from "../support/run-files.ts";

await runFiles(
  "interop/{authorization-code,bound-tokens,developers*,foreign-*,cross-app-access,google-auth,issuer-with-path,mcp-*,oauth4webapi,refresh-token,waiting-agents,workload-federation,zoo}",
);
