/** Sign-out here; the provider's own session is another matter, and so is what the user allowed to clients. */

import type { AuditedRequest } from "../../flows/refusal.ts";
import type { RecordPorts } from "../../ports.ts";
import { err, ok, type Result } from "../../result.ts";
import type { PeoplePorts, SessionPorts } from "../ports.ts";
import { describeUser, findSession } from "./session.ts";

/** What the form token of a sign-out is about. */
export const SIGN_OUT = "sign-out";

/**
 * Ends the session, and says where it was; refused if the form was not made for it. A session that is over needs no
 * ending.
 */
export type SignOutPorts = SessionPorts & RecordPorts & Pick<PeoplePorts, "formTokens">;

export async function signOut(
  ports: SignOutPorts,
  audited: AuditedRequest,
  key: string | undefined,
  formToken: string,
): Promise<Result<{ provider?: string }, undefined>> {
  const session = await findSession(ports, key);
  if (session === undefined) return ok({});
  if (!ports.formTokens.accepts(formToken, session.key, SIGN_OUT)) {
    ports.authFailures.note(audited, "form_token_wrong");
    return err(undefined);
  }
  await ports.journal.record({
    event: {
      type: "user.signed_out",
      outcome: "allow",
      reason: "signed_out",
      request: audited,
      ...describeUser(session),
    },
    rows: [{ remove: "session", key: session.key }],
  });
  return ok({ provider: session.provider });
}
