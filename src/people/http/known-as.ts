/** How pages name a client, a user and a target: by what a user may rely on, never by what a client says of itself alone. */
import type { Target } from "../../policy/rules.ts";
import { defined } from "../../result.ts";
import type { Client } from "../../settings/settings.ts";
import { isDocumentUrl } from "../../spec/cimd.ts";
import type { NamedClient, ShownTarget, ShownUser } from "../pages/display-names.ts";
import type { Session } from "../records.ts";
import { hostOf } from "./page-answers.ts";

/** A client is named by the host of its document, by when it registered itself, or by the operator's name for it. */
export function knownAs({ clientId, registeredAtSeconds, title }: Client): NamedClient {
  // CIMD-8.5-2: also where the operator pinned the document, because the name in it is still the client's own.
  if (isDocumentUrl(clientId)) return { host: hostOf(clientId) };
  return registeredAtSeconds === undefined ? { operatorName: title ?? clientId } : { registeredAtSeconds };
}

export const shownUser = ({ origin, mail, displayName }: Session): ShownUser =>
  defined<ShownUser>({ id: mail ?? origin.sub, name: displayName });

/** A target is named by the operator's title for it and the host of the name that was asked for. */
export const shownTarget = (target: Target | undefined, name: string): ShownTarget =>
  defined<ShownTarget>({
    title: target?.title ?? name,
    host: /^https:/.test(name) ? hostOf(name) : undefined,
  });
