/** Keys of clients that brought the URL of their key set themselves: in a registration, or in a metadata document. */

import { CLIENT_LAST_GOOD_SECONDS, KEY_SET_BYTES_MAX } from "../../limits.ts";
import type { FetchedKeys } from "../../ports.ts";
import { err } from "../../result.ts";
import { narrowKeys } from "../../settings/client.ts";
import { parseJwkSet, selectKey } from "../../spec/rfc7517.ts";
import type { Fetching } from "./cached-document.ts";
import { fetchOnDemand } from "./cached-document.ts";
import { KEY_SET_TYPE } from "./key-sources.ts";

export function openFetchedKeys(fetching: Fetching): FetchedKeys {
  const sets = fetchOnDemand(
    {
      name: "key_set",
      bytesMax: KEY_SET_BYTES_MAX,
      contentType: KEY_SET_TYPE,
      parse: (_url, text) => parseJwkSet(text),
      lastGoodSeconds: CLIENT_LAST_GOOD_SECONDS,
    },
    fetching,
  );
  return {
    async key(where, header, source) {
      const set = await sets.get(where, source);
      if (!set.ok) return set;
      const known = selectKey(narrowKeys(set.value, where.algorithm), header);
      if (known.ok) return known;
      if (known.error.kind !== "key_unknown") return err({ reason: known.error.kind });
      // RFC8725-3.10-v1: a stranger's `kid` earns one early look for all who ask, and no more than that.
      const newer = await sets.lookAgain(where, source);
      if (!newer.ok) return newer;
      const found = selectKey(narrowKeys(newer.value, where.algorithm), header);
      return found.ok ? found : err({ reason: found.error.kind });
    },
  };
}
