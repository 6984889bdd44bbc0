import { runFiles } from "../support/run-files.ts";

await runFiles("conformance/metadata-documents*", "conformance/{listeners,proxied-addresses,proxy-forms}");
