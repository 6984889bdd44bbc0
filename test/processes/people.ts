import { runFiles } from "../support/run-files.ts";

await runFiles(
  "conformance/{asking-agents,bound-tokens,claims,consents,deferred,deferred-changes,jobs,mcp-authorization,people,refresh,refresh-behind-one-address,revocations,signals-email,signals-received,signals-sent}",
);
