/** What checks, adapters and reports are made of. */
import type { Context } from "./context.ts";
import type { Answer, Exchanged } from "./http.ts";
import type { Json } from "./keys.ts";
import type { Level } from "./levels.ts";
import type { Client, Feature, Names, Role } from "./parties.ts";
import type { Scene } from "./scene.ts";

/** Where the server is, and what an adapter learned when it started or set up the server. */
export type Started = {
  issuer: string;
  /** Instead of the metadata, for a server that has none. */
  tokenEndpoint?: string;
  /** The authority of its certificate, PEM; without it, those of the system. */
  ca?: string;
  /** Other clients than those of the scene. */
  roles?: Partial<Record<Role, Client>>;
  names?: Partial<Names>;
  /** A token of a user that the server issued itself, for one that exchanges no other tokens than its own. */
  subjectToken?: string;
  /** Members of the client metadata that this server needs, or `undefined` for those that it does not take. */
  registration?: Json;
  /** Where it takes security events of the scene's provider. */
  signals?: string;
  stop?(): Promise<void> | void;
};

export type Adapter = {
  /** The server and its version. */
  server: string;
  offers: readonly Feature[];
  start?(scene: Scene): Promise<Started> | Started;
} & Partial<Started>;

export type Verdict = { wants: string; holds(answer: Answer, c: Context): boolean | Promise<boolean> };

export type Check = {
  id: string;
  /** The clause of our register that it is about. */
  clause: string;
  /** What must hold. */
  must: string;
  needs: readonly Feature[];
  /** The check of a good request without which a refusal says nothing. */
  basis?: string;
  /** Sends what is to be judged last. */
  request(c: Context): Promise<Answer>;
  verdict: Verdict;
};

export type Area = { area: string; checks: readonly Check[] };

export type Outcome = "passed" | "failed" | "not offered" | "could not be asked";

export type Result = Pick<Check, "id" | "clause" | "must"> & {
  level: Level;
  area: string;
  outcome: Outcome;
  /** Of a failed one: what would pass; of one that was not asked: why. */
  note: string;
  exchanged: readonly Exchanged[];
};
