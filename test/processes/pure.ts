import { runFiles } from "../support/run-files.ts";

await runFiles("{spec,audit,settings,policy,config}/**/*", "{app,clauses,clocks,patterns,repo,result}");
