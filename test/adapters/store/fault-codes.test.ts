import assert from "node:assert/strict";
import { test } from "node:test";
import { describeCode } from "../../../src/adapters/store/fault-codes.ts";

test("what an operator can do something about is told after the code of the database or the platform", () => {
  const postgres = ["28P01", "28000", "3D000", "42501", "53300", "57P03", "25006"];
  postgres.push("53100", "53200", "55P03", "57014", "57P01", "57P02", "58030", "55000");
  const way = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ECONNRESET", "EHOSTUNREACH"];
  way.push("CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY");
  const files = ["ENOENT", "EACCES", "EISDIR", "EROFS", "ENOSPC", "ERR_ACCESS_DENIED"];
  const sqlite = [7, 8, 10, 11, 13, 14, 26];
  for (const code of [...postgres, ...way, ...files, ...sqlite])
    assert.match(describeCode(code), /^: \S/, `${code}`);
  assert.equal(describeCode("XX000"), "");
});
