import { runFiles } from "../support/run-files.ts";

await runFiles("backup", "reload", "renewals", "went-back");
