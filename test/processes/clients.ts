import { runFiles } from "../support/run-files.ts";

await runFiles(
  "conformance/{authentication,client-keys,federation,loopback,platform-*,spiffe,svid-*}",
  "conformance/registration*",
);
