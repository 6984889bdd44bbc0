/** Registration access tokens, which are derived and not stored. */
import type { RegistrationTokens } from "../../ports.ts";
import { deriver, type EncryptionKeys } from "./encryption-keys.ts";

/** RFC7592-5-4, RFC6750-5.2-1: a token has 256 bits, and cannot be guessed without the key-encryption key. */
export const makeRegistrationTokens = (encryptionKeys: EncryptionKeys): RegistrationTokens =>
  deriver<[clientId: string, generation: number]>(encryptionKeys, "registration access token");
