/** `mandate keys`: which of its forms was called, and with what. */
import type { Result } from "../../result.ts";
import { defined, err } from "../../result.ts";
import type { KeyPurpose } from "../../settings/key-life.ts";
import { OWN_ALGORITHMS } from "../../spec/rfc8725.ts";
import type { Command } from "../command.ts";
import { onStore } from "../command.ts";
import type { CommandArguments } from "../options.ts";
import { listKeys } from "./list.ts";
import { reencryptKeys } from "./reencrypt.ts";
import type { Rotated } from "./rotate.ts";
import { rotateKeys } from "./rotate.ts";
import { withdrawKey } from "./withdraw.ts";

const PURPOSES: readonly KeyPurpose[] = ["token", "grant", "checkpoint"];

export function keysCommand(given: CommandArguments): Result<Command, string> {
  const [kid = ""] = given.args;
  const json = given.has("json");
  switch (given.form) {
    case "rotate":
      return readRotation(given);
    case "withdraw":
      return onStore(given, (admin) => withdrawKey(admin, { kid, dryRun: given.has("dry-run"), json }));
    case "reencrypt":
      return onStore(given, (admin) => reencryptKeys(admin, json));
    default:
      return onStore(given, (admin) => listKeys(admin, json));
  }
}

function readRotation(given: CommandArguments): Result<Command, string> {
  const [named, alg] = ["purpose", "alg"].map(given.one);
  const purpose = PURPOSES.find((one) => one === named);
  if (named !== undefined && purpose === undefined)
    return err(`--purpose is not one of ${PURPOSES.join(", ")}`);
  const algorithms: readonly string[] = OWN_ALGORITHMS;
  if (alg !== undefined && !algorithms.includes(alg))
    return err(`--alg is not one of ${algorithms.join(", ")}`);
  const which = defined<Rotated>({ purpose, alg, json: given.has("json") });
  return onStore(given, (admin) => rotateKeys(admin, which));
}
