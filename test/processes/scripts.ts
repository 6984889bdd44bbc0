import { runFiles } from "../support/run-files.ts";

await runFiles("scripts/{balancer,bench,clock-file,deploy,dev-pki,node,server-process,suite,trials}");
