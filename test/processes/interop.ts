import { runFiles } from "../support/run-files.ts";

await runFiles(
  "interop/{authorization-code,bound-tokens,foreign-*,cross-app-access,issuer-with-path,mcp-*,oauth4webapi,refresh-token}",
);
