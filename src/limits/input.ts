/** What a parser or a verifier takes: sizes, depths, counts. */

export const JWT_BYTES_MAX = 16 * 1024;
export const KEYS_MAX = 64;
export const JSON_DEPTH_MAX = 8;
export const CLAIMS_DEPTH_MAX = 16;
export const STRING_BYTES_MAX = 2 * 1024;
export const KID_CHARS_MAX = 256;
/** Tokens of one key whose valid signature is remembered; beyond it, the older half is forgotten. */
export const SIGNED_REMEMBERED_MAX = 4_096;
/** The tokens that came again and are kept in parsed form, and the length of their texts together. */
export const PARSED_REMEMBERED_MAX = 4_096;
export const PARSED_REMEMBERED_CHARS_MAX = 4 * 1024 * 1024;
/** The names whose digest is remembered, and the longest of them; beyond it, the older half is forgotten. */
export const NAMES_REMEMBERED_MAX = 4_096;
export const NAME_REMEMBERED_CHARS_MAX = 512;
export const PROOF_JTI_CHARS_MAX = 256;
/** The name that a proxy gives its client: an address, or a token of the proxy for it. */
export const FORWARDED_NODE_CHARS_MAX = 256;
export const SPIFFE_ID_BYTES_MAX = 2048;
export const TRUST_DOMAIN_BYTES_MAX = 255;
/** `sub` in the token of a platform's workload, and the name that it then has here. */
export const WORKLOAD_SUB_CHARS_MAX = 512;
/** FEDC-D-11 */
export const WORKLOAD_NAME_CLAIMS_MAX = 4;
export const PLATFORM_ID_BYTES_MAX = 1024;
/** The part of a `client_id` beside the grant of a platform, which has no meaning, that the trail keeps. */
export const IGNORED_CLIENT_ID_CHARS_MAX = 256;
export const RSA_BITS_MIN = 2048;
export const RSA_BITS_MAX = 4096;
export const CERTIFICATE_BYTES_MAX = 16 * 1024;
/** Certificates that a peer may send, leaf included. */
export const CERTIFICATES_SENT_MAX = 10;
/** Certificates of a path, leaf and anchor included. */
export const CERTIFICATE_PATH_MAX = 5;
/** The most signatures that are verified in search of one path. */
export const SIGNATURE_CHECKS_MAX = 20;
export const CERTIFICATE_CACHE_MAX = 1024;
/** The most comparisons for one path: its names times the name constraints above them. */
export const NAME_CHECKS_MAX = 10_000;
export const DER_DEPTH_MAX = 16;
/** What an agent says of why it asks; more of it is neither recorded nor shown. */
export const REASON_CHARS_MAX = 120;
/** The title of an agent, and any other text that the operator writes for people. */
export const AGENT_TITLE_CHARS_MAX = 64;
export const SHOWN_TEXT_CHARS_MAX = 200;
/** RFC 9396: the objects of `authorization_details`, before and after they are intersected. */
export const DETAILS_BYTES_MAX = 8 * 1024;
export const DETAIL_OBJECTS_MAX = 16;
export const DETAIL_FIELDS_MAX = 16;
export const DETAIL_VALUES_MAX = 64;
export const DETAIL_VALUE_BYTES_MAX = 512;
/** Claims that a rule demands of a subject, the texts for each, and the values that one may have in a token. */
export const CLAIM_POINTERS_MAX = 8;
export const CLAIM_TEXTS_MAX = 64;
export const CLAIM_LIST_MAX = 1_000;
export const CLAIM_VALUE_BYTES_MAX = 512;
/** The array, its objects, and the lists in them. */
export const DETAILS_DEPTH_MAX = 3;
