/** Preloaded into the measured server: answers every message with the CPU time of the process. */
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
// Without its parent process the server would run on.
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
