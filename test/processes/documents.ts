import { runFiles } from "../support/run-files.ts";

await runFiles(
  "conformance/{api,audit,descriptions,discovery,exchange,jwks,openapi,product,product-rules,token}",
  "conformance/rfc*",
);
