/** The `signals` section: the receivers that are told which tokens have ended. */
import * as v from "valibot";
import { EXPIRED_GRACE_SECONDS } from "../limits/store.ts";
import { meant } from "../policy/nearest.ts";
import type { PolicySet } from "../policy/rules.ts";
import { defined } from "../result.ts";
import { maybe, setting } from "../setting.ts";
import type { StreamSettings } from "../settings/settings.ts";
import { OWN_ALGORITHMS } from "../spec/rfc8725.ts";
import type { Reader } from "./reader.ts";
import { remote, secret, text } from "./values.ts";

const StreamFile = v.strictObject({
  audience: setting(text, "The `aud` of its events: the name by which the receiver knows itself."),
  targets: setting(
    v.pipe(v.array(text), v.minLength(1, "names no target")),
    "Names of the targets and partners whose tokens it is told of; of several names of one target, one is enough.",
  ),
  ...remote.entries,
  authorization: maybe(secret, "The value of the Authorization header field of each push."),
  algorithm: setting(
    v.optional(v.picklist(OWN_ALGORITHMS), "ES256"),
    "The algorithm of the signatures: ES256 (the default), EdDSA or RS256.",
  ),
});

export const SignalsFile = v.strictObject({
  streams: setting(
    v.optional(v.record(text, StreamFile), {}),
    "By name: each gets, by HTTPS, a security event for each token of its targets that ends before its time.",
  ),
});

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

export function readStreams(
  { streams }: v.InferOutput<typeof SignalsFile>,
  { targets }: Pick<PolicySet, "targets">,
  skewSeconds: number,
  { problem, readRemote, readSecret }: Reader,
): ReadonlyMap<string, StreamSettings> {
  const read = Object.entries(streams).map(([name, from]): [string, StreamSettings] => {
    const path = `signals.streams.${name}`;
    if (!NAME.test(name))
      problem(path, "is not a name of a stream: 1 to 63 characters of a-z, 0-9 and -, the first not -");
    const found = from.targets.map((one) => targets.get(one));
    for (const [at, one] of from.targets.entries()) {
      if (found[at] === undefined)
        problem(`${path}.targets.${at}`, `${one} is the name of no target${meant(one, targets.keys())}`);
    }
    const isPartner = found.some((target) => target?.partner !== undefined);
    const authorization = from.authorization && readSecret(`${path}.authorization`, from.authorization);
    const stream = defined<StreamSettings>({
      name,
      audience: from.audience,
      targets: new Set(found.flatMap((target) => target?.names ?? [])),
      afterSeconds: isPartner ? EXPIRED_GRACE_SECONDS : skewSeconds,
      alg: from.algorithm,
      endpoint: readRemote(path, from),
      authorization,
    });
    return [name, stream];
  });
  return new Map(read);
}
