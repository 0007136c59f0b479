import Foundation

@main
struct Belfry {
  static func main() async {
    ShutdownSignal.listen()
    // A reader that has gone away (`belfry … | head`, a closed socket) is an error to handle
    // where it is written to, not a reason to die.
    signal(SIGPIPE, SIG_IGN)
    guard !CommandLine.arguments.isEmpty else {
      // The runtime reads them there on Linux; without them every command would print the help.
      CommandContext().note(
        "belfry: the words of the command cannot be read: /proc is not mounted. Mount it: "
          + "mount -t proc proc /proc")
      leave(.unreachable)
    }
    let words = Array(CommandLine.arguments.dropFirst())
    leave(await BelfryCommandLine.run(words, in: CommandContext()))
  }

  /// Ends without what C libraries do at `exit`: it would take the ground from threads that still
  /// run, such as those of connections that idle. All that counts is closed, and output is written.
  private static func leave(_ code: ExitCode) -> Never {
    fflush(nil)
    _exit(code.rawValue)
  }
}
