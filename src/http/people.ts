/** The people's wing as the trunk knows it. A process that has never had `signIn` in force has none of it. */
import type { PeopleGrants } from "../flows/people.ts";
import type { LentPorts, Ports } from "../ports.ts";
import type { Settings } from "../settings/settings.ts";
import type { Dress } from "./answers.ts";
import type { Handler } from "./handler.ts";

export type PeopleEndpoint =
  | "home"
  | "logo"
  | "unknown"
  | "authorize"
  | "review"
  | "decide"
  | "ask"
  | "decideAsk"
  | "push"
  | "signIn"
  | "callback"
  | "signOut"
  | "signedOut"
  | "account"
  | "takeBack"
  | "backchannelLogout"
  | "providerKeys";

export interface People extends PeopleGrants {
  readonly endpoints: Readonly<Record<PeopleEndpoint, (ports: LentPorts) => Handler>>;
  /** At the paths of pages a refusal or a fault is a page as well. */
  dress(ports: Pick<Ports, "settings" | "hash">): Dress;
}

export interface OpenPeople extends People {
  /** Takes the providers of these settings. */
  configure(settings: Settings): void;
  stop(): void;
}
