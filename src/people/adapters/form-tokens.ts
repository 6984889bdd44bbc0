/** The tokens of the forms of a session, which are derived and not stored. */
import { deriver, type EncryptionKeys } from "../../adapters/crypto/encryption-keys.ts";
import type { FormTokens } from "../ports.ts";

/** PAGE-D-5: a token has 256 bits, and is the same on every instance. */
export const makeFormTokens = (encryptionKeys: EncryptionKeys): FormTokens =>
  deriver<[session: string, subject: string]>(encryptionKeys, "form token");
