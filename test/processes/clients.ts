import { runFiles } from "../support/run-files.ts";

await runFiles(
  "conformance/{authentication,client-keys,clouds,federation,loopback,platform-*,spiffe,svid-*}",
  "conformance/registration*",
);
