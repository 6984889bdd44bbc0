import { runFiles } from "../support/run-files.ts";

await runFiles("backup", "clocks", "reload", "renewals", "went-back");
