/** Names of time zones: the IANA Time Zone Database (RFC 6557), https://www.iana.org/time-zones */

const NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/;

/** The name as the platform writes it; undefined where it knows no zone of that name. */
export function zoneNamed(name: string): string | undefined {
  if (!NAME.test(name)) return undefined;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}
