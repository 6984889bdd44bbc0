/** The people's wing, loaded with the first settings that have `signIn`; until then no file of it is in the process. */
import type { OpenPeople, People } from "../http/people.ts";
import type { Settings } from "../settings/settings.ts";
import type { Log } from "./log.ts";
import { printFetch, type RemoteOptions } from "./remote.ts";

type PeopleWing = {
  /** The wing; undefined until it is loaded. */
  people(): People | undefined;
  /** Loads what these settings need, before they are in force. */
  load(next: Settings): Promise<void>;
  configure(next: Settings): void;
  stop(): void;
};

export function makePeopleWing(options: RemoteOptions): PeopleWing {
  const { settings, log } = options;
  let people: OpenPeople | undefined;
  return {
    people: () => people,
    async load({ signIn }) {
      if (signIn === undefined || people !== undefined) return;
      const { openPeople } = await import("../people/door.ts");
      people = openPeople({
        ...options,
        onFetch: (name, note) => printFetch(log, "provider", name, note),
        onPairwise: (name) => tellPairwise(settings(), name, log),
      });
    },
    configure: (next) => people?.configure(next),
    stop: () => people?.stop(),
  };
}

/** A user of such a provider is one subject at sign-in and another in a token that another client of it presents. */
function tellPairwise({ signIn, trustedIssuers }: Settings, name: string, log: Pick<Log, "tell">): void {
  const issuer = signIn?.providers.get(name)?.issuer ?? "";
  if (trustedIssuers.get(issuer)?.subjectClaim !== "sub") return;
  const message = `The provider ${name} gives each client another sub for the same user: set trustedIssuers.${issuer}.subjectClaim to a claim that is the same for all, such as oid`;
  log.tell({ level: "warning", event: "pairwise_subjects", message });
}
