/** The one place where a store is opened; it comes back migrated and ready. */
import type { StorePlace } from "../../settings/settings.ts";
import { openPostgres } from "./postgres/store.ts";
import { openSqlite } from "./sqlite/store.ts";
import type { Store } from "./store.ts";

/** `timeoutMs`: how long a call may take before it throws StoreUnavailable. */
export function openStore(place: StorePlace, timeoutMs?: number): Promise<Store> {
  return "sqlite" in place ? openSqlite(place.sqlite, timeoutMs) : openPostgres(place.postgres, timeoutMs);
}
