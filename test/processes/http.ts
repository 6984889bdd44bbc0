import { runFiles } from "../support/run-files.ts";

await runFiles("{http,people/http,people/pages}/**/*");
