/** The schema of the section `keys`. */
import * as v from "valibot";
import { maybe, setting, settingOfStart } from "../setting.ts";
import { KeySchedule } from "../settings/sections.ts";
import { httpsUrl, reach, secret } from "./values.ts";

const ServiceFile = v.strictObject({
  url: setting(httpsUrl, "Its URL, below which are /keys and /sign."),
  ...reach,
  authorization: maybe(secret, "The value of the header field Authorization for it."),
});

export const KeysFile = v.strictObject({
  encryptionKey: settingOfStart(
    secret,
    "The key-encryption key: 32 random bytes in base64url. Our signing keys are stored encrypted with it; back it up apart from the database.",
  ),
  otherEncryptionKey: settingOfStart(
    v.optional(secret),
    "A second key-encryption key, while one replaces the other: what was encrypted with it is read, and tokens of forms and registrations that were made with it are accepted.",
  ),
  service: settingOfStart(
    v.optional(ServiceFile),
    "A key service of yours that makes the signing keys and signs with them.",
  ),
  ...KeySchedule.entries,
});
