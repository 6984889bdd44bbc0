/** Preloaded into the server that is measured: answers every message with the CPU time of its process. */
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
// An orphan would listen for ever.
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
