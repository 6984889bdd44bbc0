import { runFiles } from "../support/run-files.ts";

await runFiles("scripts/{deploy,dev-pki,node,trials}");
