import { runFiles } from "../support/run-files.ts";

await runFiles("scripts/{balancer,bench,clock-file,deploy,dev-pki,fuzz,node,server-process,suite,trials}");
