/** Whatever a test asks its service: what the policy in force decided is decided again, from the trail alone. */
import assert from "node:assert/strict";
import { hash } from "../../src/adapters/crypto/hash.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import { claimDigest, describeDetails } from "../../src/flows/audit-fields.ts";
import { decideAgain, differing, gather, isDecided, recordedOf } from "../../src/policy/replay.ts";
import type { PolicySet } from "../../src/policy/rules.ts";

/** REPL-D-1, REPL-D-4: each comes out the same, unless the trail does not hold all of it (REPL-D-5). */
export function assertReplays(records: readonly { body: string }[], policy: PolicySet): void {
  const events = records.map(({ body }): AuditEvent => JSON.parse(body));
  const trail = gather((text) => claimDigest(hash, text));
  for (const event of events) trail.take(event);
  for (const event of events) {
    if (!isDecided(event) || event.policy?.digest !== policy.digest) continue;
    const again = decideAgain(policy, event, trail, (types, details) =>
      describeDetails(hash, types, details),
    );
    if (!again.ok) continue;
    const recorded = recordedOf(event);
    const differ = differing(recorded, again.value);
    const text = differ.length === 0 ? "" : JSON.stringify({ event, recorded, again: again.value });
    assert.deepEqual(differ, [], `REPL-D-4 ${text}`);
  }
}
