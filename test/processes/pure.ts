import { runFiles } from "../support/run-files.ts";

await runFiles(
  "{spec,audit,settings,policy,people/policy,config,people/spec,people/audit}/**/*",
  "{app,clauses,patterns,repo,result}",
);
