/** The server cannot start, and the message tells the operator why. */
export class StartRefused extends Error {
  override name = "StartRefused";
}
