/** Preloaded into a server of a test: each module of `src` that it loads is a line of its standard error. */
import { registerHooks } from "node:module";

registerHooks({
  load(url, context, next) {
    const [, name] = /\/src\/(.+\.ts)$/.exec(url) ?? [];
    // A file that is gone: after an upgrade on disk, a server that runs may not find the one that it needs.
    if (name !== undefined && name === process.env.MANDATE_TEST_GONE) throw new Error("the file is gone");
    if (name !== undefined) process.stderr.write(`loaded ${name}\n`);
    return next(url, context);
  },
});
