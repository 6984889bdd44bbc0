/** What a failover of the database keeps, in words (STORE-D-22). */
import type { Replication } from "./store.ts";

const LOSES =
  "a failover may lose the last moment, and then all that was issued is ended and nothing is answered for minutes: set synchronous_standby_names to keep it";

export function describeReplication({ waitsFor, standbys }: Replication): {
  isWarning: boolean;
  says: string;
} {
  if (waitsFor !== "") {
    const says = `a commit waits for standbys (synchronous_standby_names: ${waitsFor}): a failover to one of them keeps what was answered`;
    return { isWarning: false, says };
  }
  return standbys === 0
    ? { isWarning: false, says: `no standby follows; to one that no commit waits for, ${LOSES}` }
    : { isWarning: true, says: `standbys follow (${standbys}), and no commit waits for them: ${LOSES}` };
}
