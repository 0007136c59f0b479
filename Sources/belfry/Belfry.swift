import Foundation

@main
struct Belfry {
  static func main() async {
    ShutdownSignal.listen()
    // A reader that has gone away (`belfry … | head`, a closed socket) is an error to handle at the
    // write, not a reason to terminate.
    signal(SIGPIPE, SIG_IGN)
    guard !CommandLine.arguments.isEmpty else {
      // On Linux the runtime reads them from there; without them every command would print the
      // help.
      CommandContext().note(
        "belfry: the words of the command cannot be read: /proc is not mounted. Mount it: "
          + "mount -t proc proc /proc")
      leave(.unreachable)
    }
    let words = Array(CommandLine.arguments.dropFirst())
    leave(await BelfryCommandLine.run(words, in: CommandContext()))
  }

  /// Ends the process without the `exit` handlers of C libraries, which would free resources of
  /// threads that still run, such as those of idle connections. Everything important is closed, and
  /// output is written.
  private static func leave(_ code: ExitCode) -> Never {
    fflush(nil)
    _exit(code.rawValue)
  }
}
