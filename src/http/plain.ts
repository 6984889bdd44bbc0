/**
 * Plain HTTP of the platform, fetched in place of an import: an import of "node:http" evaluates each of its exports, and
 * one of them loads a WebSocket client, for 25 ms and 10 MB at every start.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http");
